"""A prepared data set on disk, or a view of some of its classes. Nothing is read until it is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suite.data.manifest import CHANNELS, SPLITS, Manifest, Split, read_manifest
from suite.data.npy import Shape, npy_header, npy_size
from suite.errors import DataError

Progress = Callable[[int, int], None]  # steps done, steps in all (classes, images or files)

_CHUNK = 4 << 20


def no_progress(done: int, total: int) -> None:
    """Say nothing."""


class DataSet:
    """Classes 0..len-1 of uint8 images [N, H, W, C], train and test, as files under `directory`.

    `manifest` describes exactly the classes seen through this object; `members[k]` is the number of class k's files.
    """

    def __init__(self, directory: Path, manifest: Manifest, members: Sequence[int] | None = None) -> None:
        self.directory = directory
        self.manifest = manifest
        self._members = tuple(members) if members is not None else tuple(range(len(manifest.classes)))

    @classmethod
    def open(cls, directory: Path) -> DataSet:
        """Open a prepared directory; file sizes are checked, contents are not (see `verify`)."""
        data_set = cls(directory, read_manifest(directory))
        for split in SPLITS:
            for index in range(len(data_set)):
                data_set._check_size(split, index)
        return data_set

    def __len__(self) -> int:
        return len(self.manifest.classes)

    def __repr__(self) -> str:
        return f"DataSet({self.name!r}, classes={len(self)}, resolution={self.resolution})"

    @property
    def name(self) -> str:
        """The name in the registry."""
        return self.manifest.name

    @property
    def sha256(self) -> str:
        """Content hash: equal for equal images, whatever the name."""
        return self.manifest.sha256

    @property
    def resolution(self) -> int:
        """Height and width in pixels."""
        return self.manifest.resolution

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names in the source; never shown to a learner."""
        return tuple(entry.name for entry in self.manifest.classes)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(H, W, C)."""
        return (self.resolution, self.resolution, CHANNELS)

    def count(self, split: Split, index: int) -> int:
        """Images of class `index` in `split`."""
        return self.manifest.classes[index].count(split)

    def shape(self, split: Split, index: int) -> Shape:
        """(N, H, W, C) of class `index` in `split`."""
        return (self.count(split, index), *self.image_shape)

    def path(self, split: Split, index: int) -> Path:
        """The `.npy` file of class `index` in `split`."""
        return self.directory / split / f"{self._members[index]:05d}.npy"

    def images(self, split: Split, index: int) -> NDArray[np.uint8]:
        """Class `index` of `split` as a read-only memory map, uint8 [N, H, W, C]."""
        shape = self.shape(split, index)
        self._check_size(split, index)
        return np.memmap(self.path(split, index), np.uint8, "r", offset=len(npy_header(shape)), shape=shape)

    def subset(self, indices: Sequence[int], name: str) -> DataSet:
        """A view of the classes `indices`, renumbered in that order, with a manifest and a hash of its own."""
        if len(set(indices)) != len(indices):
            raise ValueError("a class is named twice")
        classes = tuple(self.manifest.classes[i] for i in indices)
        manifest = Manifest.build(name, self.manifest.version, self.resolution, classes, self.manifest.origin)
        return DataSet(self.directory, manifest, [self._members[i] for i in indices])

    def verify(self, progress: Progress = no_progress) -> None:
        """Compare every file with the manifest, byte for byte. Raises DataError at the first that differs."""
        for index in range(len(self)):
            for split in SPLITS:
                self._check_size(split, index)
                if file_sha256(self.path(split, index)) != self.manifest.classes[index].sha256(split):
                    raise self._damaged(split, index, "differs from its manifest")
            progress(index + 1, len(self))

    def _check_size(self, split: Split, index: int) -> None:
        try:
            size = self.path(split, index).stat().st_size
        except OSError as error:
            raise self._damaged(split, index, f"cannot be read ({error.strerror})") from error
        if size != npy_size(self.shape(split, index)):
            raise self._damaged(split, index, "has a wrong size")

    def _damaged(self, split: Split, index: int, how: str) -> DataError:
        return DataError(
            f"Data set {self.name!r} is damaged: {self.path(split, index)} {how}.",
            f"Delete {self.directory} and prepare the data set again.",
        )


def file_sha256(path: Path) -> str:
    """sha256 hex digest of a file, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
