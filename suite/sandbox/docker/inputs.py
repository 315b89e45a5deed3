"""Inputs: a read-only bind mount if the engine sees this machine's files, else copies into a volume of the engine's."""

from __future__ import annotations

import secrets
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker.errors
from docker.types import Mount

from suite.errors import InfrastructureError
from suite.sandbox.docker.connect import Engine, engine_errors
from suite.sandbox.docker.labels import labels_of
from suite.sandbox.docker.spec import IN
from suite.sandbox.folders import Folders
from suite.sandbox.inbox import FOLDERS
from suite.sandbox.intake import FIXED_TIME, remove_tree

_CHUNK = 1 << 20
_NONCE = "nonce"


def shares_files(engine: Engine, folders: Folders, image: str) -> bool:
    """Whether a bind mount shows the engine the files of this machine: a nonce must come back.

    It is read from a container that is never started.
    """
    nonce = secrets.token_hex(16)
    folder = folders.make({})
    try:
        (folder / _NONCE).write_text(nonce)
        return nonce.encode() in _read_through(engine, folder, image)
    finally:
        remove_tree(folder)


def _read_through(engine: Engine, folder: Path, image: str) -> bytes:
    target = f"/{folder.name}"  # a place that no image can have prepared
    mount = Mount(target, str(folder), type="bind", read_only=True)
    container = ""
    with engine_errors("probe a bind mount"):
        try:
            container = engine.api.create_container(
                image,
                name=f"continual-suite-{folder.name}",
                labels=labels_of(folder.name, {}),
                host_config=engine.api.create_host_config(network_mode="none", mounts=[mount]),
            )["Id"]
            stream, _ = engine.api.get_archive(container, f"{target}/{_NONCE}")
            return b"".join(stream)
        except docker.errors.APIError as error:
            if error.is_server_error() and "mount" not in str(error):
                raise
            return b""  # the engine knows no such folder
        finally:
            if container:
                engine.api.remove_container(container, force=True, v=True)


def prepare_volume(engine: Engine, container: str) -> None:
    """Make the empty input folders in a container's input volume, which belongs to root."""
    _put(engine, container, b"".join(_entry(name, 0, tarfile.DIRTYPE) for name in FOLDERS))


def copy_in(engine: Engine, container: str, staged: Path) -> None:
    """Copy the files of a staged folder into a container's input volume, under the folder's name."""
    _put(engine, container, _archive(staged))


def _put(engine: Engine, container: str, archive: bytes | Iterator[bytes]) -> None:
    with engine_errors("copy a learner's inputs"):
        if not engine.api.put_archive(container, IN, archive):
            raise InfrastructureError("The Docker engine did not copy a learner's inputs.", "See `suite doctor`.")


def _archive(staged: Path) -> Iterator[bytes]:
    """A tar stream, made while it is sent: the files may be larger than the memory."""
    yield _entry(staged.name, 0, tarfile.DIRTYPE)
    for path in sorted(staged.iterdir()):
        size = path.stat().st_size
        yield _entry(f"{staged.name}/{path.name}", size, tarfile.REGTYPE)
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
        yield bytes(-size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _entry(name: str, size: int, kind: bytes) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mtime = kind, size, FIXED_TIME
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o444
    return info.tobuf(tarfile.PAX_FORMAT)
