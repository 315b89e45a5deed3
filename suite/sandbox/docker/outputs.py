"""Outputs: the tar stream of a paused container's output folder, read by a reader that knows less than tar does.

The engine writes the stream, the learner chooses names, kinds and sizes. Accepted is one top folder with regular files
in it; links, devices, sparse and nested members, a lying checksum or a stream that ends early are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from suite.errors import InfrastructureError
from suite.sandbox.intake import Intake, refused, write_file
from suite.sandbox.interface import Limits
from suite.sandbox.text import quote

_BLOCK = 512
_MAX_PAX_BYTES = 64 << 10
_SKIP = 1 << 20
_REGULAR, _FOLDER, _PAX = b"0\0", b"5", b"x"

Sink = Callable[[str, int, Callable[[int], bytes]], None]
"""Takes a member: its name, its size, and a function that reads at most so many bytes. It reads all of the member."""


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    kind: bytes


def read_outputs(chunks: Iterator[bytes], destination: Path, limits: Limits) -> list[Path]:
    """Write the files of the stream to `destination`, which must exist; the paths, by name.

    Raises LearnerError for what may not come out (before anything of that member is written), InfrastructureError when
    the stream itself is broken.
    """
    files: list[Path] = []

    def store(name: str, size: int, read: Callable[[int], bytes]) -> None:
        write_file(destination / name, size, read)
        files.append(destination / name)

    walk(chunks, Intake(limits), store)
    return sorted(files)


def weigh_outputs(chunks: Iterator[bytes], limits: Limits) -> None:
    """Raise what `read_outputs` would raise, and write nothing."""

    def skip(_name: str, size: int, read: Callable[[int], bytes]) -> None:
        while size:
            size -= len(read(min(size, _SKIP)))

    walk(chunks, Intake(limits), skip)


def walk(chunks: Iterator[bytes], intake: Intake, sink: Sink) -> None:
    """Give every file of the stream that `intake` admits to `sink`."""
    stream = _Stream(chunks)
    top: str | None = None
    while (member := _next_member(stream)) is not None:
        if member.kind == _FOLDER and top is None:
            top = member.name.rstrip("/")
            continue
        folder, _, name = member.name.rpartition("/")
        if member.kind not in (b"0", b"\0") or folder != top:
            raise refused(f'"{quote(member.name)}", which is not a regular file')
        intake.admit(name, member.size)
        sink(name, member.size, stream.some)
        stream.exactly(-member.size % _BLOCK)


def _next_member(stream: _Stream) -> _Member | None:
    """The next member, with the long name or size that a pax header before it gave; None at the end of the archive."""
    extended: dict[str, str] = {}
    while True:
        header = stream.exactly(_BLOCK)
        if header == bytes(_BLOCK):
            return None
        _check_sum(header)
        size = _number(header[124:136])
        if (kind := header[156:157]) != _PAX:
            break
        if size > _MAX_PAX_BYTES:
            raise refused("a name that is too long")
        extended = _pax_records(stream.exactly(size + -size % _BLOCK)[:size])
    prefix, name = _text(header[345:500]), _text(header[0:100])
    if header[257:263] == b"ustar\0" and prefix:
        name = f"{prefix}/{name}"
    name = extended.get("path", name)
    if any(key.startswith("GNU.sparse") for key in extended):
        raise refused(f'"{quote(name)}", which is sparse')
    if "size" in extended:
        size = _decimal(extended["size"])
    return _Member(name, size, kind)


def _check_sum(header: bytes) -> None:
    blanked = header[:148] + b" " * 8 + header[156:]
    if sum(blanked) != _number(header[148:156]):
        raise _broken("a checksum is wrong")


def _number(field: bytes) -> int:
    """An octal field, or GNU's big-endian form for sizes that octal cannot hold."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ")
    if not all(c in b"01234567" for c in digits):
        raise _broken("a number is malformed")
    return int(digits or b"0", 8)


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise _broken("a number is malformed")
    return int(text)


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", errors="backslashreplace")


def _pax_records(data: bytes) -> dict[str, str]:
    """Records of the form `<length> <key>=<value>\\n`, where length counts the whole record."""
    records = {}
    while data:
        digits, blank, _ = data[:10].partition(b" ")
        if not blank or not digits.isdigit():
            raise _broken("an extended header is malformed")
        record, data = data[: int(digits)], data[int(digits) :]
        key, equals, value = record[len(digits) + 1 : -1].partition(b"=")
        if not equals or record[-1:] != b"\n":
            raise _broken("an extended header is malformed")
        records[_text(key)] = value.decode("utf-8", errors="backslashreplace")
    return records


def _broken(what: str) -> InfrastructureError:
    return InfrastructureError(f"The engine's copy of a learner's output cannot be read: {what}.", "Try again.")


class _Stream:
    """Chunks of any size as bytes on demand."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def some(self, limit: int) -> bytes:
        """Between 1 and `limit` bytes."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                raise _broken("it ends early")
            self._rest = memoryview(chunk)
        data, self._rest = bytes(self._rest[:limit]), self._rest[limit:]
        return data

    def exactly(self, count: int) -> bytes:
        """All of the next `count` bytes."""
        parts = []
        while count:
            parts.append(self.some(count))
            count -= len(parts[-1])
        return b"".join(parts)
