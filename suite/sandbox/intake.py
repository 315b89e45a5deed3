"""What may come out of a cell: regular files with plain names, within the limits, under normalised modes and times."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from suite.errors import InfrastructureError, LearnerError
from suite.sandbox.interface import Limits
from suite.sandbox.text import quote
from suite.status import Status

FIXED_TIME = 946_684_800  # 2000-01-01 00:00 UTC, as for the data that go in
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_CHUNK = 1 << 20


class Intake:
    """Counts and names what is taken out, before a byte of it is copied. The limits hold for the whole output."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._names: set[str] = set()
        self._bytes = 0

    def admit(self, name: str, size: int) -> None:
        """Let a regular file in. Raises LearnerError: STATE_TOO_LARGE over a limit, PROTOCOL_ERROR for its name."""
        if not _NAME.fullmatch(name) or name in {".", ".."}:
            raise refused(f'a file named "{quote(name)}"', "Use letters, digits, '.', '_' and '-'.")
        if name in self._names:
            raise refused(f"{name!r} twice")
        if size > self._limits.file_bytes:
            raise _too_large(f"{name} has {size} bytes; the longest file may have {self._limits.file_bytes}.")
        self._names.add(name)
        self._bytes += size
        if len(self._names) > self._limits.output_files:
            raise _too_large(f"The output has more than {self._limits.output_files} files.")
        if self._bytes > self._limits.output_bytes:
            raise _too_large(f"The output has more than {self._limits.output_bytes} bytes.")


def refused(what: str, remedy: str = "") -> LearnerError:
    """The output holds something that is never carried."""
    return LearnerError(Status.PROTOCOL_ERROR, f"The learner's output holds {what}.", remedy)


def _too_large(message: str) -> LearnerError:
    return LearnerError(Status.STATE_TOO_LARGE, message, "Store less from task to task.")


def write_file(path: Path, size: int, read: Callable[[int], bytes]) -> None:
    """Write a new file of exactly `size` bytes from `read`, which raises if it has no more."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        left = size
        while left:
            data = read(min(left, _CHUNK))
            out.write(data)
            left -= len(data)
    path.chmod(0o644)
    os.utime(path, (FIXED_TIME, FIXED_TIME))


def take_folder(source: Path, destination: Path, limits: Limits) -> list[Path]:
    """Copy a learner's output folder of this machine, whose owner must be stopped. The files written, by name."""
    with disk_errors("the learner's output cannot be stored"):
        destination.mkdir(parents=True, exist_ok=True)
        intake, files = Intake(limits), []
        with os.scandir(source) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False):
                    raise refused(f'"{quote(entry.name)}", which is not a regular file')
                intake.admit(entry.name, entry.stat(follow_symlinks=False).st_size)
                files.append(entry.name)
        return [_copy(source / name, destination / name) for name in sorted(files)]


def _copy(source: Path, target: Path) -> Path:
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise refused(f"{source.name!r}, which is not a regular file")
        write_file(target, status.st_size, lambda count: _exactly(stream, count))
    return target


def _exactly(stream: IO[bytes], count: int) -> bytes:
    if not (data := stream.read(count)):
        raise refused("a file that shrinks while it is read")
    return data


@contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Turn failures of this machine's file system into InfrastructureError."""
    try:
        yield
    except OSError as error:
        raise InfrastructureError(
            f"On this machine {what}: {error}.", "Check space and rights; see `suite doctor`."
        ) from error


def remove_tree(folder: Path) -> None:
    """Remove `folder` and all in it; gone already is fine."""
    shutil.rmtree(folder, ignore_errors=True)
