"""The official CIFAR-10 and CIFAR-100 'python version' archives: pickles in a tar, read without unpickling objects.

A pickle names functions to call. Here every name but three of numpy's is refused, and those three are stood in for by
inert records: nothing of numpy, nor of anything else, is called while the stream is read.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from suite.data.dataset import Progress, file_sha256
from suite.data.manifest import SPLITS, Split
from suite.data.readers.archive import tar_streams
from suite.data.readers.source import Source
from suite.data.writer import ClassPlan, Writer
from suite.errors import DataError

_REMEDY = "Download the 'python version' from https://www.cs.toronto.edu/~kriz/cifar.html again."
_SIDE = 32
_PIECE = 1 << 20


@dataclass(frozen=True)
class Layout:
    """File names and dictionary keys of one of the two archives, and the sha256 of the official file."""

    name: str
    sha256: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    meta: str
    labels: bytes
    label_names: bytes


CIFAR100 = Layout(
    name="CIFAR-100",
    sha256="85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    train=("cifar-100-python/train",),
    test=("cifar-100-python/test",),
    meta="cifar-100-python/meta",
    labels=b"fine_labels",
    label_names=b"fine_label_names",
)
CIFAR10 = Layout(
    name="CIFAR-10",
    sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    train=tuple(f"cifar-10-batches-py/data_batch_{i}" for i in range(1, 6)),
    test=("cifar-10-batches-py/test_batch",),
    meta="cifar-10-batches-py/batches.meta",
    labels=b"labels",
    label_names=b"label_names",
)


@dataclass(frozen=True)
class _Batch:
    """One pickled file: which split, pixels uint8 [N, 32, 32, 3], labels int64 [N]."""

    split: Split
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


class _Array:
    """Stands in for numpy.ndarray: keeps what the stream says about one, and does nothing."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Dtype:
    """Stands in for numpy.dtype."""

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __setstate__(self, state: Any) -> None:
        """Byte order and fields do not matter for bytes."""


def _reconstruct(*_: Any) -> _Array:
    return _Array()


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
}


class _Pieces:
    """A stream as the unpickler wants it, filled piece by piece: a member of a tar would be copied whole twice."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.read, self.readline = stream.read, stream.readline

    def readinto(self, buffer: bytearray) -> int:
        view, done = memoryview(buffer), 0
        while done < len(view) and (piece := self.read(min(_PIECE, len(view) - done))):
            view[done : done + len(piece)] = piece
            done += len(piece)
        return done


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        """The stand-in for an allowed name; anything else stops the reading before it is imported."""
        if (module_name, global_name) not in _ALLOWED:
            raise DataError(f"The pickle asks for {module_name[:80]}.{global_name[:80]}.", _REMEDY)
        return _ALLOWED[module_name, global_name]


def unpickle(stream: IO[bytes]) -> dict[bytes, Any]:
    """The dictionary in `stream`: bytes, numbers, strings, lists, and arrays as inert records. Raises DataError."""
    try:
        value = _Unpickler(_Pieces(stream), encoding="bytes").load()
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"A file of the archive is no readable pickle ({type(error).__name__}).", _REMEDY) from error
    if not isinstance(value, dict):
        raise DataError("A file of the archive holds no dictionary.", _REMEDY)
    return value


def read_cifar(path: Path, layout: Layout, sha256: str | None = None) -> Source:
    """Find the classes in the archive at `path`, with the split it has.

    Its sha256 must be that of the official file, or the one given. Raises DataError.
    """
    if not path.is_file():
        raise DataError(f"{path} is no file.", _REMEDY)
    found, wanted = file_sha256(path), sha256 or layout.sha256
    if found != wanted:
        raise DataError(f"{path} is not the official archive: sha256 {found} instead of {wanted}.", _REMEDY)
    names = _class_names(path, layout)
    counts = {split: np.zeros(len(names), np.int64) for split in SPLITS}
    for batch in _batches(path, layout, len(names)):
        counts[batch.split] += np.bincount(batch.labels, minlength=len(names))
    classes = [ClassPlan(n, int(counts["train"][i]), int(counts["test"][i])) for i, n in enumerate(names)]

    def fill(writer: Writer, resolution: int, progress: Progress) -> None:
        if resolution != _SIDE:
            raise DataError(f"{layout.name} has {_SIDE} pixels, not {resolution}.", f"Prepare it at {_SIDE} pixels.")
        place = {split: np.zeros(len(names), np.int64) for split in SPLITS}
        files = len(layout.train) + len(layout.test)
        for done, batch in enumerate(_batches(path, layout, len(names))):
            for label in np.unique(batch.labels):
                images = batch.images[batch.labels == label]
                writer.put(batch.split, int(label), int(place[batch.split][label]), images)
                place[batch.split][label] += len(images)
            progress(done + 1, files)

    return Source(classes, "source", found, fill)


def _class_names(path: Path, layout: Layout) -> list[str]:
    for name, stream in tar_streams(path):
        if name == layout.meta:
            return [label.decode() for label in unpickle(stream)[layout.label_names]]
    raise DataError(f"{path} lacks {layout.meta}.", _REMEDY)


def _batches(path: Path, layout: Layout, classes: int) -> Iterator[_Batch]:
    """The batches in the archive's order, one in memory at a time."""
    wanted: dict[str, Split] = {**dict.fromkeys(layout.train, SPLITS[0]), **dict.fromkeys(layout.test, SPLITS[1])}
    for name, stream in tar_streams(path):
        if name in wanted:
            yield _batch(unpickle(stream), wanted.pop(name), layout, classes)
    if wanted:
        raise DataError(f"{path} lacks {sorted(wanted)[0]}.", _REMEDY)


def _batch(raw: dict[bytes, Any], split: Split, layout: Layout, classes: int) -> _Batch:
    """Check one dictionary and turn its rows (channel, row, column) into images."""
    problem = DataError("A file of the archive has not the layout of CIFAR.", _REMEDY)
    record, labels = raw.get(b"data"), raw.get(layout.labels)
    if not isinstance(record, _Array) or not isinstance(labels, list):
        raise problem
    if not all(type(label) is int and 0 <= label < classes for label in labels):
        raise problem
    try:
        _, shape, dtype, fortran, content = record.state
        if dtype.args[0] not in (b"u1", "u1") or fortran or tuple(shape) != (len(labels), 3 * _SIDE * _SIDE):
            raise problem
        rows = np.frombuffer(content, np.uint8).reshape(-1, 3, _SIDE, _SIDE)
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise problem from error
    return _Batch(split, rows.transpose(0, 2, 3, 1), np.array(labels, np.int64))
