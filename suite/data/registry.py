"""All data sets by name: what they are, whether they are prepared, and how they become so.

Names are read by `suite.data.names`. Kinds: `embedded` (made from what is installed), `archive` (a zip in the folder
that SUITE_ARCHIVES names, called `archive/<file>`), `paper` (downloaded by the user under its owner's terms).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from suite.data import digits, preparing
from suite.data.dataset import DataSet, Progress, no_progress
from suite.data.glyphs.sets import glyph_origin, glyph_sets
from suite.data.manifest import MANIFEST_FILE
from suite.data.names import Name, common_names, parse_name
from suite.data.papers import PAPERS
from suite.data.paths import ARCHIVES_VARIABLE, archives_root, data_root, directory_of
from suite.errors import DataError, UsageError

__all__ = ["DataSetInfo", "describe", "load", "names", "prepare", "verify"]

Kind = Literal["embedded", "archive", "paper"]
_ARCHIVE = "archive/"
EMBEDDED_RESOLUTION = 32


@dataclass(frozen=True)
class DataSetInfo:
    """One line of `suite data list`. `classes` and `resolution` are None where only preparing can tell."""

    name: str
    kind: Kind
    source: str
    licence: str
    prepared: bool
    classes: int | None
    resolution: int | None
    sha256: str | None  # content hash, once prepared
    how: str  # what to do to prepare it


def names() -> list[str]:
    """Every data set with a name of its own; further parts are written as `suite.data.names` says."""
    archives = archives_root()
    found = [_ARCHIVE + path.stem for path in archives.glob("*.zip")] if archives and archives.is_dir() else []
    return sorted({*_embedded(), *PAPERS, *common_names(), *found})


def describe(name: str, root: Path | None = None) -> DataSetInfo:
    """What `name` is, and whether it is prepared under `root`. Raises DataError for an unknown name."""
    parsed = _parse(name)
    directory = directory_of(root or data_root(), parsed.prepared)
    prepared = (directory / MANIFEST_FILE).is_file()
    info = _known(parsed)
    if prepared:
        data_set = _view(DataSet.open(directory), parsed)
        origin = data_set.manifest.origin
        return replace(
            info,
            prepared=True,
            source=origin.source,
            licence=origin.licence,
            classes=len(data_set),
            resolution=data_set.resolution,
            sha256=data_set.sha256,
        )
    return info


def load(name: str, root: Path | None = None) -> DataSet:
    """Open `name`. Raises DataError, saying exactly what to prepare, when it is not there."""
    parsed = _parse(name)
    directory = directory_of(root or data_root(), parsed.prepared)
    if not (directory / MANIFEST_FILE).is_file():
        where = "" if parsed.prepared == name else f" (a part of {parsed.prepared!r})"
        raise DataError(f"Data set {name!r}{where} is not prepared in {directory.parent}.", _known(parsed).how)
    return _view(DataSet.open(directory), parsed)


def prepare(
    name: str,
    root: Path | None = None,
    source: Path | None = None,
    progress: Progress = no_progress,
    seed: int | None = None,
) -> DataSet:
    """Prepare what `name` is (a part of), and open it; nothing is done where it already is.

    `source` is the file or folder to read. `seed` renders glyphs from a secret seed, of which the manifest holds a
    commitment only. Raises DataError, UsageError, or InfrastructureError when the disk is full.
    """
    parsed = _parse(name)
    directory = directory_of(root or data_root(), parsed.prepared)
    if seed is not None and parsed.base not in glyph_sets():
        raise UsageError(f"{name!r} is not rendered, so it takes no seed.", "Leave the seed out.")
    if source is not None and parsed.base in _embedded():
        raise UsageError(f"{name!r} is made here, not read from a file.", "Leave the file out.")
    return _view(_prepare_whole(parsed, directory, source, progress, seed), parsed)


def verify(name: str, root: Path | None = None, progress: Progress = no_progress) -> DataSet:
    """Compare every file of `name` with its manifest. Raises DataError at the first that differs."""
    data_set = load(name, root)
    data_set.verify(progress)
    return data_set


def _prepare_whole(parsed: Name, directory: Path, source: Path | None, progress: Progress, seed: int | None) -> DataSet:
    resolution = parsed.resolution
    if parsed.base == "digits":
        return preparing.prepare_digits(parsed.prepared, directory, resolution or EMBEDDED_RESOLUTION, progress)
    if parsed.base in glyph_sets():
        return preparing.prepare_glyphs(
            parsed.base, parsed.prepared, directory, resolution or EMBEDDED_RESOLUTION, progress, seed
        )
    if (directory / MANIFEST_FILE).is_file():
        return DataSet.open(directory)
    if (paper := PAPERS.get(parsed.base)) is not None:
        if source is None:
            raise DataError(f"Data set {parsed.prepared!r} has to be downloaded first.", _known(parsed).how)
        return preparing.prepare_paper(paper, parsed.base, parsed.prepared, directory, source, resolution, progress)
    archive = source or _local_archive(parsed.base)
    if archive is None or not archive.exists():
        raise DataError(f"The archive of {parsed.base!r} is not here.", _known(parsed).how)
    return preparing.prepare_archive(parsed.base, parsed.prepared, directory, archive, resolution, progress)


def _local_archive(stem: str) -> Path | None:
    archives = archives_root()
    return archives / f"{stem.removeprefix(_ARCHIVE)}.zip" if archives is not None else None


def _embedded() -> set[str]:
    return {"digits", *glyph_sets()}


def _is_known(stem: str) -> bool:
    if stem.startswith(_ARCHIVE):
        archive = _local_archive(stem)
        here = archive is not None and archive.is_file()
        # without the archive at hand, what ends like a half is one: the whole may still be prepared
        return here or not stem.endswith(("-1", "-2"))
    return stem in PAPERS or stem in _embedded()


def _parse(name: str) -> Name:
    if (parsed := parse_name(name, _is_known)) is not None:
        return parsed
    near = difflib.get_close_matches(name, names(), 3)
    raise DataError(
        f"Unknown data set {name[:200]!r}.",
        f"Did you mean {' or '.join(near)}?" if near else "`suite data list` shows all there are.",
    )


def _view(data_set: DataSet, parsed: Name) -> DataSet:
    """The part of a prepared data set that the name means, under that name."""
    if parsed.half is None and parsed.count is None and data_set.name == parsed.text:
        return data_set
    return data_set.subset(parsed.part(data_set.class_names), parsed.text)


def _known(parsed: Name) -> DataSetInfo:
    """What can be said before anything is prepared."""
    command = f"suite data prepare {parsed.prepared}"
    kind: Kind
    classes: int | None = None
    resolution = parsed.resolution
    if (paper := PAPERS.get(parsed.base)) is not None:
        kind, origin, classes, resolution = "paper", (paper.source, paper.licence), paper.classes, paper.resolution
        how = f"{paper.steps} ({paper.source}; licence: {paper.licence}.) Then run: {command} --from FILE"
    elif parsed.base.startswith(_ARCHIVE):
        file = parsed.base.removeprefix(_ARCHIVE) + ".zip"
        kind, origin = "archive", (file, "not stated")
        how = f"Set {ARCHIVES_VARIABLE} to the folder that holds {file} and run: {command} (or: {command} --from FILE)"
    else:
        made = digits.ORIGIN if parsed.base == "digits" else glyph_origin()
        kind, origin, how = "embedded", (made.source, made.licence), f"Run: {command}"
        classes = 10 if parsed.base == "digits" else len(glyph_sets()[parsed.base])
        resolution = EMBEDDED_RESOLUTION
    if classes is not None:
        classes = len(parsed.part([str(i) for i in range(classes)]))
    return DataSetInfo(
        name=parsed.text,
        kind=kind,
        source=origin[0],
        licence=origin[1],
        prepared=False,
        classes=classes,
        resolution=parsed.resolution or resolution,
        sha256=None,
        how=how,
    )
