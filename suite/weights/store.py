"""The folder of weights: one folder per name, with `NAME.safetensors` and `manifest.json`.

What is shipped with the suite lies inside the package in the same form. A folder holds one file of weights, so that
what is mounted into a container shows no other.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from suite.errors import DataError, InfrastructureError
from suite.weights.known import KNOWN
from suite.weights.manifest import MANIFEST_FILE, WeightsManifest, read_manifest

WEIGHTS_VARIABLE = "SUITE_WEIGHTS"
_CHUNK = 4 << 20


@dataclass(frozen=True)
class Weights:
    """Weights that are here."""

    folder: Path
    manifest: WeightsManifest

    @property
    def path(self) -> Path:
        """The safetensors file."""
        return self.folder / f"{self.manifest.name}.safetensors"


@dataclass(frozen=True)
class WeightsInfo:
    """One line of `suite weights list`."""

    name: str
    is_here: bool
    licence: str
    source: str
    parameters: int | None
    sha256: str | None
    remark: str


def weights_root(explicit: Path | None = None) -> Path:
    """The folder of weights: the given one, else SUITE_WEIGHTS, else the user's cache."""
    if explicit is not None:
        return explicit
    if named := os.environ.get(WEIGHTS_VARIABLE):
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "continual-suite" / "weights"


def shipped_root() -> Path:
    """The folder of the weights that come with the suite."""
    return Path(str(files("suite.weights"))) / "files"


def find(name: str, root: Path | None = None) -> Weights:
    """The weights `name`, stored or shipped; only the size of the file is checked.

    Raises DataError, saying how to get them, when they are not here.
    """
    for base in (weights_root(root), shipped_root()):
        if name in _names(base):
            folder = base / name
            weights = Weights(folder, read_manifest(folder))
            _check(weights, weights.path.is_file() and weights.path.stat().st_size == weights.manifest.size_bytes)
            return weights
    raise DataError(f"The weights {name[:200]!r} are not in {weights_root(root)}.", how_to_get(name))


def how_to_get(name: str) -> str:
    """What to do for weights that are not here."""
    if name in KNOWN:
        return f"Run: suite weights fetch {name} (licence: {KNOWN[name].licence})."
    return f"Add a file of them: suite weights add {name[:200]} --from FILE. `suite weights list` shows all there are."


def listed(root: Path | None = None) -> list[WeightsInfo]:
    """All weights that are known, shipped or stored, by name."""
    names = sorted({*KNOWN, *_names(weights_root(root)), *_names(shipped_root())})
    return [_info(name, root) for name in names]


def _info(name: str, root: Path | None) -> WeightsInfo:
    if name in _names(weights_root(root)) or name in _names(shipped_root()):
        manifest = find(name, root).manifest
        return WeightsInfo(
            name, True, manifest.licence, manifest.source, manifest.parameters, manifest.sha256, manifest.remark
        )
    known = KNOWN[name]
    return WeightsInfo(name, False, known.licence, known.source, None, None, known.remark)


def verify(name: str, root: Path | None = None) -> Weights:
    """Compare the file with its manifest, byte for byte. Raises DataError when it differs."""
    weights = find(name, root)
    _check(weights, file_sha256(weights.path) == weights.manifest.sha256)
    return weights


def weights_folder(name: str, root: Path | None = None) -> Path:
    """The folder to mount for the weights `name`: it holds `NAME.safetensors`. Raises DataError."""
    return find(name, root).folder


def keep(file: Path, manifest: WeightsManifest, root: Path | None = None) -> Weights:
    """Move `file` into the store with its manifest, whole or not at all; equal weights are left as they are.

    Raises DataError when other weights have the name, InfrastructureError when the disk is full.
    """
    base = weights_root(root)
    if manifest.name in _names(base):
        present = find(manifest.name, root)
        if present.manifest.sha256 == manifest.sha256:
            return present
        raise DataError(
            f"Other weights are stored as {manifest.name!r} in {present.folder}.",
            "Delete that folder, or choose another name.",
        )
    try:
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=base, prefix=".new-") as work:
            ready = Path(work) / "weights"
            ready.mkdir()
            shutil.copyfile(file, ready / f"{manifest.name}.safetensors")
            (ready / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
            ready.rename(base / manifest.name)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise InfrastructureError(f"The disk of {base} is full.", "Make room and try again.") from error
        raise DataError(
            f"{base} cannot be written ({error.strerror}).", f"Set {WEIGHTS_VARIABLE} to another folder."
        ) from error
    return find(manifest.name, root)


def file_sha256(path: Path) -> str:
    """sha256 hex digest of a file, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _names(base: Path) -> set[str]:
    return {path.parent.name for path in base.glob(f"*/{MANIFEST_FILE}")} if base.is_dir() else set()


def _check(weights: Weights, holds: bool) -> None:
    if not holds:
        raise DataError(
            f"The weights {weights.manifest.name!r} are damaged: {weights.path} differs from its manifest.",
            f"Delete {weights.folder} and {how_to_get(weights.manifest.name)[0].lower()}"
            f"{how_to_get(weights.manifest.name)[1:]}",
        )
