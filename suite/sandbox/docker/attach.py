"""Bytes to and from a container, over the engine's attach stream."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import Any

from suite.sandbox.docker.connect import Engine, engine_errors
from suite.sandbox.pump import TICK_SECONDS, Stream

_CHUNK = 1 << 18
_HEADER = struct.Struct(">BxxxL")


class AttachTransport:
    """Attached before the container starts, so that nothing it says is lost."""

    def __init__(self, engine: Engine, container: str) -> None:
        with engine_errors("attach to a container"):
            self._raw: Any = engine.api.attach_socket(
                container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
        self._socket: Any = getattr(self._raw, "_sock", self._raw)
        self._socket.settimeout(TICK_SECONDS)
        self._frames = Frames()

    def send(self, data: bytes, deadline: float) -> None:
        """See `Transport.send`."""
        view = memoryview(data)
        while view:
            if time.monotonic() >= deadline:
                raise TimeoutError
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError:
                continue
            except OSError:
                return

    def receive(self) -> list[tuple[Stream, bytes]]:
        """See `Transport.receive`."""
        try:
            data = self._socket.recv(_CHUNK)
        except TimeoutError:
            return []
        except OSError as error:
            raise EOFError from error
        if not data:
            raise EOFError
        return self._frames.feed(data)

    def shut(self) -> None:
        """See `Transport.shut`."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket and all that the SDK wrapped around it, once nobody reads or sends any more."""
        for layer in (getattr(self._raw, "_response", None), self._raw, self._socket):
            if layer is not None:
                with contextlib.suppress(OSError, ValueError):
                    layer.close()


class Frames:
    """Splits the engine's multiplexed stream: one byte of stream number, three of nothing, four of length, payload.

    Payloads are passed on as they come; none is ever held.
    """

    def __init__(self) -> None:
        self._header = bytearray()
        self._stream = Stream.ERR
        self._left = 0

    def feed(self, data: bytes) -> list[tuple[Stream, bytes]]:
        """The parts of `data` by stream; what is not stdout counts as stderr."""
        parts, view = [], memoryview(data)
        while view:
            if self._left == 0:
                missing = _HEADER.size - len(self._header)
                self._header += view[:missing]
                view = view[missing:]
                if len(self._header) == _HEADER.size:
                    number, self._left = _HEADER.unpack(bytes(self._header))
                    self._stream = Stream.OUT if number == Stream.OUT.value else Stream.ERR
                    self._header.clear()
                continue
            payload = view[: self._left]
            parts.append((self._stream, bytes(payload)))
            self._left -= len(payload)
            view = view[len(payload) :]
        return parts
