"""Who may write: one process per run, one at a time per database. Locks die with their process, however it ends."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suite.errors import StoreError

_POLL_SECONDS = 0.02


@contextmanager
def file_lock(path: Path, timeout: float, *, shared: bool = False, what: str = "") -> Iterator[None]:
    """Hold an advisory lock on the file `path`, which is made if need be and stays.

    Any number may hold it shared, one alone otherwise. StoreError after `timeout` seconds, naming the holder.
    """
    descriptor = _open(path)
    try:
        _acquire(descriptor, path, timeout, shared, what)
        if shared:
            yield
        else:
            _sign(descriptor)
            yield
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)  # and with it the lock


def is_locked(path: Path) -> bool:
    """Whether some living process holds `path` alone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be opened: {error.strerror}.", "Make its folder writable, or choose another with --results."
        ) from error


def _acquire(descriptor: int, path: Path, timeout: float, shared: bool, what: str) -> None:
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreError(
                    f"{what or path} is locked by {_holder(descriptor)}.",
                    f"Wait until that process has ended, or end it; then try again. (The lock is {path}.)",
                ) from None
            time.sleep(_POLL_SECONDS)
        else:
            return


def _sign(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()} on {socket.gethostname()}\n".encode(), 0)


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
    return f"process {text}" if text else "another process"
