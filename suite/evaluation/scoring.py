"""From scores and labels to counts (G1: labels stay here). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suite.protocol import ProtocolError, npy_header

_ROWS_AT_ONCE = 1 << 14


def read_predictions(path: Path, items: int, classes: int) -> NDArray[np.int64]:
    """Row-wise argmax [items] of a `scores.npy` that a container wrote, float32 [items, classes], read in slices.

    The lowest class id wins a tie. Raises ProtocolError for a wrong shape, dtype, order or size, and for NaN or
    infinity. Memory stays bounded whatever the number of items.
    """
    header = npy_header("<f4", (items, classes))
    expected = len(header) + 4 * items * classes
    if path.is_symlink() or not path.is_file():
        raise ProtocolError("The learner answered `predict` but wrote no scores.npy.")
    if (size := path.stat().st_size) != expected:
        raise ProtocolError(
            f"scores.npy has {size} bytes; float32 [{items}, {classes}] takes {expected}.",
            "Return one row per item and one column per class seen so far.",
        )
    predictions = np.empty(items, np.int64)
    with path.open("rb") as stream:
        if stream.read(len(header)) != header:
            raise ProtocolError(f"scores.npy is not float32 [{items}, {classes}] in C order, `.npy` version 1.0.")
        for start in range(0, items, _ROWS_AT_ONCE):
            rows = min(_ROWS_AT_ONCE, items - start)
            block = np.fromfile(stream, "<f4", rows * classes).reshape(rows, classes)
            if not np.isfinite(block).all():
                raise ProtocolError("scores.npy holds NaN or infinite values.", "Check for divergence in `learn`.")
            predictions[start : start + rows] = block.argmax(axis=1)
    return predictions


def count_correct(
    predictions: NDArray[np.int64], labels: NDArray[np.int64], task_of_class: Mapping[int, int], tasks: int
) -> tuple[list[int], list[int]]:
    """Per task tested: items predicted right, and items. `task_of_class` maps class id -> task."""
    task_of = np.full(max(task_of_class) + 1, -1, np.int64)
    task_of[list(task_of_class)] = list(task_of_class.values())
    tested = task_of[labels]
    total = np.bincount(tested, minlength=tasks)
    correct = np.bincount(tested[predictions == labels], minlength=tasks)
    return correct.tolist(), total.tolist()


def agreement(first: NDArray[np.int64], second: NDArray[np.int64], positions: NDArray[np.int64]) -> float:
    """Share of items predicted alike in both requests; item i of the second stood at positions[i] of the first (G5)."""
    return float(np.mean(first[positions] == second))
