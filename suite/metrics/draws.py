"""Random bits for statistics: the raw PCG64 stream, which numpy promises to keep; its distributions may change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def random_bits(seed: int, count: int) -> NDArray[np.uint64]:
    """`count` uniform 64-bit integers, the same for a seed in every version of numpy."""
    return np.asarray(np.random.PCG64(seed).random_raw(count), dtype=np.uint64)


def random_orders(seed: int, rows: int, size: int) -> NDArray[np.intp]:
    """Uniformly random permutations of range(size): intp [rows, size]."""
    keys = random_bits(seed, rows * size).reshape(rows, size)
    return np.argsort(keys, axis=1, kind="stable")
