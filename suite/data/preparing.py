"""From a source to a prepared directory: one function per kind of source. All do nothing where it already is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from suite.data.dataset import DataSet, Progress, file_sha256
from suite.data.manifest import CHANNELS, Origin
from suite.data.papers import Paper, draw_hundred
from suite.data.readers.source import Source, SplitRule
from suite.data.writer import Plan, Writer, write_data_set
from suite.errors import DataError

VERSION = 1  # of what the readers make of their sources
LIMIT_BYTES = 20_000_000_000  # of a data set; beyond, training images are capped
# archives whose neighbouring images are frames of one scene: a random split would put twins on both sides
BY_INDEX = {"archive/gtsrb", "archive/hand-gestures44"}
_FULL = 224  # pixels the papers show their learners, but for CIFAR


def prepare_digits(name: str, directory: Path, resolution: int, progress: Progress) -> DataSet:
    """scikit-learn's digits."""
    from suite.data.digits import fill_digits, plan_digits

    plan = plan_digits(name, resolution)
    return write_data_set(directory, plan, lambda writer: fill_digits(writer, resolution, progress))


def prepare_glyphs(
    base: str, name: str, directory: Path, resolution: int, progress: Progress, seed: int | None
) -> DataSet:
    """The glyph set `base`."""
    from suite.data.glyphs.sets import fill_glyphs, plan_glyphs

    plan = replace(plan_glyphs(base, resolution, seed), name=name)
    return write_data_set(directory, plan, lambda writer: fill_glyphs(writer, plan, seed, progress))


def prepare_archive(
    base: str, name: str, directory: Path, path: Path, resolution: int | None, progress: Progress
) -> DataSet:
    """A local archive or folder; where no resolution is asked for, the one nearest below its first image's."""
    from suite.data.readers.folders import first_image, read_folders
    from suite.data.readers.images import short_side

    if resolution is None:
        side = short_side(first_image(path), str(path))
        resolution = next((r for r in (256, 64) if side >= r), 32)
    rule: SplitRule = "by_index" if base in BY_INDEX else "seeded"
    source = read_folders(path, base, rule)
    origin = Origin(source=path.name, licence="not stated", split=source.split, source_sha256=source.sha256)
    return _write(directory, Plan(name, VERSION, resolution, source.classes, origin), source, progress)


def prepare_paper(
    paper: Paper, base: str, name: str, directory: Path, path: Path, resolution: int | None, progress: Progress
) -> DataSet:
    """One of the papers' data sets, from its official archive or a folder of images. Raises DataError."""
    size = resolution or paper.resolution
    source, notes = _read_paper(paper, base, path, size)
    if len(source.classes) != paper.classes:
        remedy = f"{base} has {paper.classes}. Download it from {paper.source}"
        raise DataError(f"{path} holds {len(source.classes)} classes.", remedy)
    if size < min(_FULL, paper.resolution):
        notes = (*notes, "reduced resolution: not comparable with the paper")
    origin = Origin(
        source=paper.source, licence=paper.licence, split=source.split, notes=notes, source_sha256=source.sha256
    )
    return _write(directory, Plan(name, VERSION, size, source.classes, origin), source, progress)


def _write(directory: Path, plan: Plan, source: Source, progress: Progress) -> DataSet:
    def fill(writer: Writer) -> None:
        source.fill(writer, plan.resolution, progress)

    return write_data_set(directory, plan, fill)


def _read_paper(paper: Paper, base: str, path: Path, size: int) -> tuple[Source, tuple[str, ...]]:
    if paper.reader in ("cifar10", "cifar100"):
        from suite.data.readers.cifar import CIFAR10, CIFAR100, read_cifar

        return read_cifar(path, CIFAR10 if paper.reader == "cifar10" else CIFAR100), ()
    from suite.data.readers.folders import read_folders

    _check_official(paper, path)
    select = None if not paper.draw else (lambda names: draw_hundred(names, paper.draw))
    source = read_folders(path, base, select=select)
    cap = training_cap(source, size)
    if cap is None:
        return source, ()
    note = f"at most {cap} training images a class (limit of {LIMIT_BYTES / 1e9:g} GB): not comparable with the paper"
    return read_folders(path, base, select=select, cap=cap), (note,)


def training_cap(source: Source, size: int) -> int | None:
    """Training images a class that keep the data set under LIMIT_BYTES; None where all do."""
    room = LIMIT_BYTES // (size * size * CHANNELS)
    if sum(entry.train + entry.test for entry in source.classes) <= room:
        return None
    return max(1, (room - sum(entry.test for entry in source.classes)) // len(source.classes))


def _check_official(paper: Paper, path: Path) -> None:
    """Refuse an archive that is not the official one; a folder cannot be checked."""
    if paper.sha256 is not None and path.is_file() and file_sha256(path) != paper.sha256:
        raise DataError(
            f"{path} is not the official archive (its sha256 differs).",
            f"Download {paper.source} again, or unpack what you have and give the folder.",
        )
