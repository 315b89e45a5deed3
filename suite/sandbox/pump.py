"""The thread that reads a learner's streams: one line of its own to each cell, whatever carries the bytes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from suite.protocol import Method, Params, Response
from suite.sandbox.channel import Channel
from suite.sandbox.interface import NoteHandler
from suite.sandbox.text import Tail

TICK_SECONDS = 0.2
"""Longest wait of a transport, and the interval of metering."""

MAX_BYTES_PER_SECOND = 32 << 20
"""Faster streams are read no faster: a flood must not cost the host a core, and only blocks its own sender."""


class Stream(Enum):
    """Which of a learner's streams bytes came from."""

    OUT = 1
    ERR = 2


class Transport(Protocol):
    """Bytes to and from one learner."""

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of `data`; a peer that is gone is not an error (the end is seen by `receive`).

        Raises TimeoutError at the deadline (monotonic clock).
        """
        ...

    def receive(self) -> list[tuple[Stream, bytes]]:
        """What has arrived, waiting at most TICK_SECONDS. Raises EOFError at the end of all streams."""
        ...

    def shut(self) -> None:
        """Stop both directions at once, from any thread; `receive` then raises EOFError."""
        ...


class Conversation:
    """A channel, its transport and the thread between them."""

    def __init__(self, transport: Transport, log_bytes: int, on_tick: Callable[[], None]) -> None:
        self._transport = transport
        self._channel = Channel()
        self._log = Tail(log_bytes)
        self._log_lock = threading.Lock()
        self._on_tick = on_tick
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._pump, name="suite-sandbox-reader", daemon=True)
        self._thread.start()

    def ask(self, method: Method, params: Params, seconds: float, on_note: NoteHandler | None) -> Response:
        """See `Channel.ask`."""
        return self._channel.ask(method, params, seconds, self._transport.send, on_note)

    def check(self) -> None:
        """See `Channel.check`."""
        self._channel.check()

    def log_tail(self) -> str:
        """The end of the learner's stderr as display text."""
        with self._log_lock:
            return self._log.text()

    def add_to_log(self, text: str) -> None:
        """Write a line of the harness into the log."""
        with self._log_lock:
            self._log.add(text.encode())

    def wait_for_end(self, seconds: float) -> bool:
        """Wait until the learner's streams have been read to their end; whether they have."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def close(self) -> None:
        """Stop reading. A container that floods an unread stream cannot be killed, so this comes before the kill."""
        self._is_closed.set()
        self._transport.shut()
        if threading.current_thread() is not self._thread:
            self._thread.join(10 * TICK_SECONDS)

    def _pump(self) -> None:
        try:
            second, read = time.monotonic(), 0
            ticked = second
            while not self._is_closed.is_set():
                chunks = self._transport.receive()
                now = time.monotonic()
                for stream, data in chunks:
                    read += len(data)
                    self._take(stream, data, now)
                if now - ticked >= TICK_SECONDS:
                    self._on_tick()
                    ticked = now
                if now - second >= 1:
                    second, read = now, 0
                elif read > MAX_BYTES_PER_SECOND:
                    self._is_closed.wait(1 - (now - second))
        except EOFError:
            pass
        finally:
            self._channel.end()

    def _take(self, stream: Stream, data: bytes, now: float) -> None:
        if stream is Stream.OUT:
            self._channel.receive(data, now)
        else:
            with self._log_lock:
                self._log.add(data)
