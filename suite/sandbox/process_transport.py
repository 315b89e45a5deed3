"""Bytes to and from a child process, over pipes."""

from __future__ import annotations

import os
import select
import subprocess
import time

from suite.sandbox.pump import TICK_SECONDS, Stream

_CHUNK = 1 << 16


def has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Whether a child has ended. It is not reaped, so that its number stays its own until it is."""
    if process.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


class PipeTransport:
    """Reads stdout and stderr of `process` and writes to its stdin. Closes its own ends when it is shut."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("the process was not started with three pipes")
        self._process = process
        self._in = process.stdin.fileno()
        os.set_blocking(self._in, False)
        self._streams = {process.stdout.fileno(): Stream.OUT, process.stderr.fileno(): Stream.ERR}
        self._out = process.stdout.fileno()
        self._wake_read, self._wake_write = os.pipe()
        self._is_shut = False

    def send(self, data: bytes, deadline: float) -> None:
        """See `Transport.send`."""
        view = memoryview(data)
        while view:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            poll = select.poll()
            poll.register(self._in, select.POLLOUT)
            poll.register(self._wake_read, select.POLLIN)
            ready = dict(poll.poll(left * 1000))
            if self._wake_read in ready:
                return
            if ready:
                try:
                    view = view[os.write(self._in, view) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    return

    def receive(self) -> list[tuple[Stream, bytes]]:
        """See `Transport.receive`. The end: stdout is closed, and so is stderr or the process has exited."""
        poll = select.poll()
        for descriptor in (*self._streams, self._wake_read):
            poll.register(descriptor, select.POLLIN)
        # Asked before the last look, so that nothing written before the exit is missed.
        is_over = self._out not in self._streams and (len(self._streams) == 0 or has_exited(self._process))
        ready = poll.poll(0 if is_over else TICK_SECONDS * 1000)
        if any(descriptor == self._wake_read for descriptor, _ in ready) or (is_over and not ready):
            raise EOFError
        chunks = []
        for descriptor, _ in ready:
            if data := os.read(descriptor, _CHUNK):
                chunks.append((self._streams[descriptor], data))
            else:
                del self._streams[descriptor]
        return chunks

    def shut(self) -> None:
        """See `Transport.shut`."""
        if not self._is_shut:
            self._is_shut = True
            os.write(self._wake_write, b".")

    def close(self) -> None:
        """Close every descriptor, once nobody reads or sends any more."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        for descriptor in (self._wake_read, self._wake_write):
            if descriptor >= 0:
                os.close(descriptor)
        self._wake_read = self._wake_write = -1
