"""Files that are whole or absent: what the journal is made of."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suite.errors import StoreError

TEMPORARY = ".tmp-"
"""Prefix of what is not committed yet: readers pass over it."""


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn what the operating system says about `path` into a StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Free space or mend its permissions; the same command continues where it stopped.",
        ) from error


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Make `path` hold `data`, so that a reader or a crash sees all of it or what was there before."""
    temporary = path.with_name(f"{TEMPORARY}{path.name}-{os.getpid()}")
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(directory: Path) -> None:
    """Make the files of a flat `directory`, and their names, survive a loss of power."""
    for file in directory.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    sync_directory(directory)


def remove_tree(directory: Path) -> None:
    """Delete `directory` and all in it; nothing happens where there is none."""
    if not directory.exists():
        return
    doomed = directory.with_name(f"{TEMPORARY}gone-{directory.name}-{os.getpid()}")
    shutil.rmtree(doomed, ignore_errors=True)
    directory.rename(doomed)  # at once out of sight: half a state is never mistaken for a state
    shutil.rmtree(doomed)


def hash_state(directory: Path) -> str:
    """sha256 over the names and contents of a flat state directory: equal states, equal hashes."""
    total = hashlib.sha256()
    for file in sorted(directory.iterdir()):
        with file.open("rb") as stream:
            total.update(f"{file.name}\0{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()
