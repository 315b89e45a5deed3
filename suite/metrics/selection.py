"""Averages over seeds, and the choice of hyperparameters among draws (GTEP algorithms 1 and 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation with ddof = 1 (None for a single seed), and number of seeds."""

    mean: float
    std: float | None
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """Summary of one value per seed. ValueError when there is none, or one that is not finite."""
    if not values:
        raise ValueError("there is no value to summarise")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a value to summarise is not finite")
    n = len(values)
    mean = math.fsum(values) / n
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None
    return Summary(mean, std, n)


def harmonic_mean(first: float, second: float) -> float:
    """2ab / (a + b) for non-negative a, b; 0 where both are 0."""
    if not (first >= 0 and second >= 0):
        raise ValueError("the harmonic mean is defined for non-negative numbers only")
    total = first + second
    # divided before multiplied: the product of two subnormal numbers would vanish
    return 2 * first * (second / total) if total else 0.0


def selection_score(acc: Sequence[float], avg_acc: Sequence[float]) -> float:
    """Harmonic mean of the seed-mean Acc and the seed-mean AvgAcc of one draw (GTEP algorithm 2, line 10)."""
    return harmonic_mean(summarise(acc).mean, summarise(avg_acc).mean)


def best_draw(scores: Sequence[float | None]) -> int | None:
    """Index of the draw with the highest score, the earlier one on a tie.

    None marks a draw with a failed seed: it is not eligible. The result is None when no draw is eligible.
    """
    best: int | None = None
    highest = -math.inf
    for index, score in enumerate(scores):
        if score is not None and score > highest:
            best, highest = index, score
    return best
