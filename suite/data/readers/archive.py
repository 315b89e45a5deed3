"""Archives and folders as one list of members, read in their own order without unpacking. Hostile ones are refused.

Refused: absolute or climbing names, links, devices, sparse and encrypted members, doubled names, members over
MAX_MEMBER_BYTES, archives that swell beyond MAX_SWELLING, more than MAX_MEMBERS members.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from suite.errors import DataError

MAX_MEMBERS = 3_000_000
MAX_MEMBER_BYTES = 64 << 20
MAX_SWELLING = 100  # unpacked over packed bytes, beyond the first GB
MAX_NAME = 1024
_MAX_HEADER_BYTES = 1 << 20
_REMEDY = "Download it again from its official address, or name another file (--from FILE)."
_FAULTS = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, OSError)


@dataclass(frozen=True)
class Archive:
    """`names`: the regular files in it, in its order. `visit(wanted, see)` reads those wanted, in that order."""

    path: Path
    names: list[str]
    _walk: Callable[[Path], Iterator[tuple[str, Callable[[], bytes]]]]

    def visit(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
        """Name and content of each member for which `wanted(name)`, in one pass. Raises DataError when damaged."""
        with _faults(self.path):
            for name, read in self._walk(self.path):
                if wanted(name):
                    yield name, read()


def open_archive(path: Path) -> Archive:
    """List a zip, a tar (plain, gz, bz2, xz) or a folder. Raises DataError for anything else."""
    with _faults(path):
        if path.is_dir():
            walk = _walk_folder
        elif not path.is_file():
            raise DataError(f"{path} does not exist.", "Name an archive or a folder (--from FILE).")
        elif zipfile.is_zipfile(path):
            walk = _walk_zip
        elif _is_tar(path):
            walk = _walk_tar
        else:
            raise DataError(f"{path} is neither a zip, nor a tar archive, nor a folder.", _REMEDY)
        names = [_safe(path, name) for name, _ in walk(path)]
    if len(set(names)) != len(names):
        raise DataError(f"{path} holds two members of one name.", _REMEDY)
    return Archive(path, names, walk)


def tar_streams(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of the regular files of a tar, to be read before the next one is asked for. Raises DataError."""
    with _faults(path), tarfile.open(path, "r|*", tarinfo=_BoundedInfo) as archive:
        for member in _tar_members(path, archive):
            if (stream := archive.extractfile(member)) is not None:
                yield member.name, stream


def _is_tar(path: Path) -> bool:
    try:
        tarfile.open(path, "r|*", tarinfo=_BoundedInfo).close()
    except tarfile.ReadError:
        return False
    return True


def _walk_zip(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        _bounded(path, len(entries), sum(entry.file_size for entry in entries))
        for entry in entries:
            if entry.is_dir():
                continue
            if entry.flag_bits & 1 or (entry.external_attr >> 16) & 0o170000 not in (0, 0o100000):
                raise DataError(f"{path}: {entry.filename[:200]!r} is encrypted or no regular file.", _REMEDY)
            yield entry.filename, lambda e=entry: _read_zip(path, archive, e)  # type: ignore[misc]


def _read_zip(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    _member_size(path, entry.filename, entry.file_size)
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise DataError(f"{path}: {entry.filename[:200]!r} is not as large as it says.", _REMEDY)
    return content


class _BoundedInfo(tarfile.TarInfo):
    """Refuses extended headers (long names, PAX records) that would fill the memory."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) and self.size > _MAX_HEADER_BYTES:
            raise DataError("The archive has a header of more than 1 MB.", _REMEDY)
        return super()._proc_member(tar)  # type: ignore[misc,no-any-return]


def _walk_tar(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    # a stream ('r|') is read once from front to end: no seeking back in compressed data
    with tarfile.open(path, "r|*", tarinfo=_BoundedInfo) as archive:
        for member in _tar_members(path, archive):
            yield member.name, lambda m=member: _read_tar(path, archive, m)  # type: ignore[misc]


def _tar_members(path: Path, archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Regular files only; folders are passed over, anything else is refused."""
    total = 0
    for count, member in enumerate(archive):
        archive.members = []  # type: ignore[attr-defined]  # tarfile would keep every header
        total += member.size
        _bounded(path, count + 1, total)
        if member.isdir():
            continue
        if not member.isreg() or member.sparse is not None:
            raise DataError(f"{path}: {member.name[:200]!r} is a link or no regular file.", _REMEDY)
        yield member
    if _is_cut(path, archive.offset):
        raise DataError(f"{path} ends too early.", _REMEDY)


def _is_cut(path: Path, end: int) -> bool:
    """Whether a plain tar lacks the zeros at its end; tarfile does not mind, and compressed ones say so themselves."""
    with path.open("rb") as stream:
        if stream.read(262)[257:] != b"ustar":
            return False
        stream.seek(-tarfile.BLOCKSIZE, io.SEEK_END)
        return end > path.stat().st_size or any(stream.read())


def _read_tar(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    _member_size(path, member.name, member.size)
    stream = archive.extractfile(member)
    content = stream.read() if stream is not None else b""
    if len(content) != member.size:
        raise DataError(f"{path}: {member.name[:200]!r} ends too early.", _REMEDY)
    return content


def _walk_folder(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    count = 0
    for folder, folders, names in os.walk(path, onerror=_raise):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            count += 1
            _bounded(path, count, 0)
            if file.is_file():
                yield file.relative_to(path).as_posix(), lambda f=file: _read_file(path, f)  # type: ignore[misc]


def _raise(error: OSError) -> None:
    raise error


def _read_file(path: Path, file: Path) -> bytes:
    _member_size(path, file.name, file.stat().st_size)
    return file.read_bytes()


def _safe(path: Path, name: str) -> str:
    """`name` without a leading './', or DataError."""
    parts = name.removeprefix("./").split("/")
    if len(name) > MAX_NAME or "\\" in name or not name.isprintable() or {"", ".", ".."} & set(parts):
        raise DataError(f"{path} has a member with an unsafe name: {name[:200]!r}.", _REMEDY)
    return name


def _member_size(path: Path, name: str, size: int) -> None:
    if size > MAX_MEMBER_BYTES:
        raise DataError(f"{path}: {name[:200]!r} has {size} bytes, more than {MAX_MEMBER_BYTES}.", _REMEDY)


def _bounded(path: Path, count: int, total: int) -> None:
    if count > MAX_MEMBERS:
        raise DataError(f"{path} has more than {MAX_MEMBERS} members.", _REMEDY)
    if total > (1 << 30) + MAX_SWELLING * path.stat().st_size:
        raise DataError(f"{path} unpacks to more than {MAX_SWELLING} times its size.", _REMEDY)


@contextlib.contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except _FAULTS as error:
        raise DataError(f"{path} cannot be read ({error}).", _REMEDY) from error
