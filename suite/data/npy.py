"""The one array file this package writes: uint8 `.npy`, format 1.0, C order; only the count of images varies."""

from __future__ import annotations

import functools
import io

import numpy as np

Shape = tuple[int, int, int, int]  # N, H, W, C


@functools.lru_cache(maxsize=4096)
def npy_header(shape: Shape) -> bytes:
    """The exact header that `numpy.save` writes for uint8 of `shape`; a file is this and the images, nothing else."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def npy_size(shape: Shape) -> int:
    """Bytes of the whole file."""
    count, height, width, channels = shape
    return len(npy_header(shape)) + count * height * width * channels
