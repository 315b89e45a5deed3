"""The build context: an author's directory as a tar file that depends on its content only."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path
from typing import IO

from suite.errors import ImageError

_NEVER = (
    "**/.git",
    "**/.venv",
    "**/__pycache__",
    "**/*.pyc",
    "**/.mypy_cache",
    "**/.pytest_cache",
    "**/.ruff_cache",
    "**/.ipynb_checkpoints",
    "**/.DS_Store",
)
_TIME = 315_532_800  # 1980-01-01: a fixed time makes equal sources equal layers


def write_context(author: Path, out: IO[bytes], extra: dict[str, Path] | None = None) -> None:
    """Writes the files of `author` (without what its .dockerignore and common sense leave out) and `extra` as a tar
    file.

    `extra` maps names in the context to files elsewhere. Owner, times and modes are normalised (the executable bit
    counts), symbolic links stay links.

    Raises ImageError when there is no Dockerfile, when a name in `extra` is taken, or when something is neither file,
    folder nor link.
    """
    from docker.utils.build import exclude_paths

    if not (author / "Dockerfile").is_file():
        raise ImageError(f"There is no Dockerfile in {author}.", "`suite new NAME` writes one to start from.")
    ignore = author / ".dockerignore"
    own = [line.strip() for line in ignore.read_text().splitlines()] if ignore.is_file() else []
    patterns = [*(line for line in own if line and not line.startswith("#")), *_NEVER]
    # the engine needs the Dockerfile, whatever is ignored
    names = exclude_paths(str(author), patterns, dockerfile="Dockerfile")
    files = {name: author / name for name in names if name and name != ".dockerignore"}
    for name, path in (extra or {}).items():
        if (author / name).exists():
            raise ImageError(f"{author} holds {name!r}, a name that the build needs.", "Rename it.")
        files[name] = path
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            _add(archive, name, files[name])


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    info = tarfile.TarInfo(name)
    info.mtime = _TIME
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        info.type, info.linkname = tarfile.SYMTYPE, str(path.readlink())
        archive.addfile(info)
    elif stat.S_ISDIR(mode):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(info)
    elif stat.S_ISREG(mode):
        info.size, info.mode = path.stat().st_size, 0o755 if mode & stat.S_IXUSR else 0o644
        with path.open("rb") as file:
            archive.addfile(info, file)
    else:
        raise ImageError(f"{path} is neither a file, a folder nor a link.", "Remove it or name it in .dockerignore.")
