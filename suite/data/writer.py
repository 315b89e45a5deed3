"""Prepares a data set: written beside its place image by image, moved there whole, so it is complete or absent."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from suite.data.dataset import DataSet, file_sha256
from suite.data.manifest import CHANNELS, MANIFEST_FILE, SPLITS, ClassFiles, Manifest, Origin, Split
from suite.data.npy import Shape, npy_header, npy_size
from suite.errors import DataError, InfrastructureError

_SPARE_BYTES = 64 << 20


@dataclass(frozen=True)
class ClassPlan:
    """A class to be written, and how many images each split will get."""

    name: str
    train: int
    test: int

    def count(self, split: Split) -> int:
        """Images to come in `split`."""
        return self.train if split == "train" else self.test


@dataclass(frozen=True)
class Plan:
    """All that is known of a data set before its first image is read."""

    name: str
    version: int
    resolution: int
    classes: Sequence[ClassPlan]
    origin: Origin

    def shape(self, split: Split, index: int) -> Shape:
        """(N, H, W, C) of one file."""
        return (self.classes[index].count(split), self.resolution, self.resolution, CHANNELS)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(npy_size(self.shape(split, i)) for split in SPLITS for i in range(len(self.classes)))


class Writer:
    """Takes images in any order, each exactly once; at most one of them is in memory."""

    def __init__(self, directory: Path, plan: Plan) -> None:
        self._directory, self._plan = directory, plan
        self._left = {(split, i): plan.classes[i].count(split) for split in SPLITS for i in range(len(plan.classes))}
        self._open: tuple[tuple[Split, int], BinaryIO] | None = None
        for split in SPLITS:
            (directory / split).mkdir(parents=True)

    def put(self, split: Split, index: int, position: int, images: NDArray[np.uint8]) -> None:
        """Store `images` uint8 [n, H, W, C] as images `position`.. of class `index`."""
        shape = self._plan.shape(split, index)
        if images.dtype != np.uint8 or images.shape[1:] != shape[1:] or position + len(images) > shape[0]:
            raise ValueError(f"images {images.dtype} {images.shape} at {position} do not fit a file of {shape}")
        stream = self._file(split, index)
        stream.seek(len(npy_header(shape)) + position * images[0].size)
        stream.write(np.ascontiguousarray(images).data)
        self._left[split, index] -= len(images)

    def finish(self) -> Manifest:
        """Hash the files and write the manifest. Raises ValueError when images are missing."""
        self.close()
        missing = [key for key, left in self._left.items() if left]
        if missing:
            raise ValueError(f"images are missing in {missing[:3]}")
        plan = self._plan
        entries = [
            ClassFiles(
                name=entry.name,
                train=entry.train,
                test=entry.test,
                train_sha256=self._seal("train", i),
                test_sha256=self._seal("test", i),
            )
            for i, entry in enumerate(plan.classes)
        ]
        manifest = Manifest.build(plan.name, plan.version, plan.resolution, tuple(entries), plan.origin)
        (self._directory / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
        return manifest

    def close(self) -> None:
        """Close the file at hand."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _path(self, split: Split, index: int) -> Path:
        return self._directory / split / f"{index:05d}.npy"

    def _file(self, split: Split, index: int) -> BinaryIO:
        if self._open is not None and self._open[0] == (split, index):
            return self._open[1]
        self.close()
        path = self._path(split, index)
        fresh = not path.exists()
        stream: BinaryIO = path.open("w+b" if fresh else "r+b")
        if fresh:
            stream.write(npy_header(self._plan.shape(split, index)))
        self._open = ((split, index), stream)
        return stream

    def _seal(self, split: Split, index: int) -> str:
        path = self._path(split, index)
        path.chmod(0o444)
        return file_sha256(path)


def write_data_set(directory: Path, plan: Plan, fill: Callable[[Writer], None]) -> DataSet:
    """Write `plan` to `directory` with the images that `fill` puts, or do nothing where it already is.

    A second process waits for the first. What a killed one left behind is removed.
    Raises InfrastructureError when the disk is full, DataError when the place cannot be written or holds other data.
    """
    with _machine_errors(directory.parent):
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _locked(directory.parent / f".{directory.name}.lock"):
            if directory.exists():
                return open_prepared(directory, plan.version, plan.resolution, plan.origin.seed_commitment)
            partial = directory.parent / f".{directory.name}.partial"
            if partial.exists():
                shutil.rmtree(partial)
            _check_disk(directory.parent, plan.size)
            try:
                _write(partial, plan, fill)
                _flush(partial)
                partial.rename(directory)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
    return DataSet.open(directory)


def _write(partial: Path, plan: Plan, fill: Callable[[Writer], None]) -> None:
    writer = Writer(partial, plan)
    try:
        fill(writer)
        writer.finish()
    finally:
        writer.close()


def open_prepared(directory: Path, version: int, resolution: int, seed_commitment: str | None) -> DataSet:
    """Open what is already prepared. Raises DataError when it was prepared otherwise than asked for now."""
    data_set = DataSet.open(directory)
    manifest = data_set.manifest
    for what, found, wanted in (
        ("version", manifest.version, version),
        ("resolution", manifest.resolution, resolution),
        ("rendering seed", manifest.origin.seed_commitment, seed_commitment),
    ):
        if found != wanted:
            raise DataError(
                f"{manifest.name!r} is already prepared in {directory} with another {what}.",
                "Delete that directory, or prepare into another one (--data DIR).",
            )
    return data_set


def _check_disk(root: Path, needed: int) -> None:
    free = shutil.disk_usage(root).free
    if free < needed + _SPARE_BYTES:
        raise InfrastructureError(
            f"{root} has {free / 1e9:.2f} GB free, but {needed / 1e9:.2f} GB are needed.",
            "Free some space or name another directory (--data DIR or SUITE_DATA).",
        )


def _flush(directory: Path) -> None:
    """Force the files to disk before the rename that declares them complete."""
    for path in [*directory.rglob("*"), directory]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _machine_errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = "Free some space or name another directory (--data DIR or SUITE_DATA)."
            raise InfrastructureError(f"The disk of {root} is full.", remedy) from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EEXIST):
            remedy = "Name a directory you can write to (--data DIR or SUITE_DATA)."
            raise DataError(f"{root} cannot be written ({error.strerror}).", remedy) from error
        raise
