"""Pairwise potentials between classes: how easily each pair is confused in the present feature spaces (CLDyB eq. 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def prototype(features: ArrayLike) -> Floats:
    """Mean feature of one class: float [N, D] -> float64 [D]. ValueError when empty or not finite."""
    array = np.asarray(features, dtype=np.float64)
    if array.ndim != 2 or not len(array):
        raise ValueError(f"the features of a class must be of shape [N >= 1, D], not {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError("features must be finite")
    result: Floats = array.mean(axis=0)
    return result


def cosine_similarities(prototypes: ArrayLike, others: ArrayLike | None = None) -> Floats:
    """Cosine of every pair: [A, D] and [B, D] (default: A) -> float64 [A, B]; 0 for a vector without direction."""
    left = _directions(prototypes)
    right = left if others is None else _directions(others)
    return np.clip(left @ right.T, -1.0, 1.0)


def class_potentials(similarities: Sequence[Floats]) -> Floats:
    """Psi(C_p, C_q): the mean over M learners of min-max normalised cosine similarities (CLDyB eq. 3).

    `similarities`: M matrices [C, C], rows in one order of the classes that are still free. Minimum and maximum are
    taken over pairs of different classes: a class with itself has similarity 1 and would compress all others. Where
    all pairs of a learner are equally similar the quotient is undefined, and its potentials are 1: no pair is
    preferred. Returns float64 [C, C], symmetric, in [0, 1]; the diagonal has no meaning and is 0.
    """
    if not similarities:
        raise ValueError("potentials need at least one learner")
    size = len(similarities[0])
    if any(matrix.shape != (size, size) for matrix in similarities):
        raise ValueError("the similarities of all learners must be square and of one size")
    result = np.zeros((size, size))
    for matrix in similarities:
        result += _min_max(matrix)
    result /= len(similarities)
    return result


def _directions(vectors: ArrayLike) -> Floats:
    array = np.asarray(vectors, dtype=np.float64)
    if array.ndim != 2 or not np.all(np.isfinite(array)):
        raise ValueError("prototypes must be finite and of shape [C, D]")
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    result: Floats = np.divide(array, norms, out=np.zeros_like(array), where=norms > 0)
    return result


def _min_max(matrix: Floats) -> Floats:
    """z(.) of eq. 3 over off-diagonal entries."""
    different = ~np.eye(len(matrix), dtype=bool)
    if not different.any():
        return np.zeros_like(matrix)
    low, high = matrix[different].min(), matrix[different].max()
    scaled = np.ones_like(matrix) if high == low else np.clip((matrix - low) / (high - low), 0.0, 1.0)
    result: Floats = np.where(different, scaled, 0.0)
    return result
