"""scikit-learn's `digits`: 1,797 real handwritten digits of 8x8 pixels, shipped with that library.

Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI ML repository, 1998 (CC BY 4.0).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from suite.data.dataset import Progress
from suite.data.manifest import Origin
from suite.data.writer import ClassPlan, Plan, Writer
from suite.errors import UsageError
from suite.seeds import derive_seed, shuffled

VERSION = 1
TEST_SHARE = 0.2
ORIGIN = Origin(
    source="https://archive.ics.uci.edu/dataset/80 (the part shipped as sklearn.datasets.load_digits)",
    licence="CC BY 4.0",
    split="seeded",
    notes=("8x8 grey images, enlarged with bicubic interpolation and repeated on three channels",),
)


def _load() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Images [1797, 8, 8] in 0..16 and labels [1797]."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise UsageError("Data set 'digits' needs scikit-learn.", "pip install 'continual-suite[data]'") from error
    images, labels = load_digits(return_X_y=True)
    return images.reshape(-1, 8, 8), labels.astype(np.int64)


def _enlarge(images: NDArray[np.float64], resolution: int) -> NDArray[np.uint8]:
    """[N, 8, 8] in 0..16 -> uint8 [N, resolution, resolution, 3]."""
    from PIL import Image

    grey = np.round(images * (255 / 16)).astype(np.uint8)
    size = (resolution, resolution)
    large = np.stack([np.asarray(Image.fromarray(one).resize(size, Image.Resampling.BICUBIC)) for one in grey])
    return np.repeat(large[..., None], 3, axis=-1)


def _split(labels: NDArray[np.int64]) -> Iterator[tuple[list[int], list[int]]]:
    """Train and test indices of each digit: a fixed shuffle, since the source has no split."""
    for digit in range(10):
        order = shuffled(np.flatnonzero(labels == digit).tolist(), derive_seed("digits", "split", VERSION, digit))
        held_out = round(len(order) * TEST_SHARE)
        yield sorted(order[held_out:]), sorted(order[:held_out])


def plan_digits(name: str, resolution: int) -> Plan:
    """What `fill_digits` will write."""
    parts = list(_split(_load()[1]))
    classes = [ClassPlan(str(digit), len(train), len(test)) for digit, (train, test) in enumerate(parts)]
    return Plan(name, VERSION, resolution, classes, ORIGIN)


def fill_digits(writer: Writer, resolution: int, progress: Progress) -> None:
    """Put all digits."""
    images, labels = _load()
    for digit, (train, test) in enumerate(_split(labels)):
        writer.put("train", digit, 0, _enlarge(images[train], resolution))
        writer.put("test", digit, 0, _enlarge(images[test], resolution))
        progress(digit + 1, 10)
