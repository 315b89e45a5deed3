"""Ranks and rank correlation in plain numpy: ties, permutation tests, bootstrap intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suite.metrics.draws import random_bits, random_orders

Floats = NDArray[np.float64]
Method = Literal["spearman", "kendall"]

EXACT_UP_TO = 9
"""Number of pairs up to which a p-value enumerates all permutations: 9! = 362,880."""

_CHUNK = 20_000
_SLACK = 1e-12  # equal statistics of different permutations may differ by rounding


@dataclass(frozen=True)
class Correlation:
    """Rank correlation of `n` pairs, its two-sided p-value and its bootstrap interval; NaN where undefined."""

    method: Method
    statistic: float
    p_value: float
    low: float
    high: float
    n: int


def average_ranks(values: ArrayLike) -> Floats:
    """Ranks from 1 in ascending order, tied values sharing their mean rank: float64 [N]."""
    array = _vector(values)
    ordered = np.sort(array)
    below, up_to = np.searchsorted(ordered, array, "left"), np.searchsorted(ordered, array, "right")
    result: Floats = (below + up_to + 1) / 2
    return result


def competition_ranks(scores: Sequence[float | None]) -> list[int | None]:
    """Places of a league table, 1 for the highest score; equals share a place and the next one is skipped (1, 2, 2, 4).

    None (a failed entry) gets no place and takes none.
    """
    present = [score for score in scores if score is not None]
    if any(math.isnan(score) for score in present):
        raise ValueError("a score to rank is NaN")
    return [None if score is None else 1 + sum(other > score for other in present) for score in scores]


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho: Pearson correlation of average ranks. NaN where one side is constant."""
    first, second = _pairs(x, y)
    return float(_statistics("spearman", first, second, np.arange(first.size)[None])[0])


def kendall(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b, corrected for ties. NaN where one side is constant."""
    first, second = _pairs(x, y)
    return float(_statistics("kendall", first, second, np.arange(first.size)[None])[0])


def p_value(x: ArrayLike, y: ArrayLike, method: Method, *, seed: int, permutations: int = 20_000) -> float:
    """Two-sided permutation p-value: how often a random pairing correlates at least as strongly in magnitude.

    Exact (all permutations) up to `EXACT_UP_TO` pairs, where `seed` has no influence; beyond that (b + 1) / (m + 1)
    over m = `permutations` random ones, which is valid but varies with the seed.
    """
    first, second = _pairs(x, y)
    observed = abs(float(_statistics(method, first, second, np.arange(first.size)[None])[0]))
    if math.isnan(observed):
        return math.nan
    exact = first.size <= EXACT_UP_TO
    chunks = _all_permutations(first.size) if exact else _random_permutations(first.size, permutations, seed)
    extreme = count = 0
    for chunk in chunks:
        extreme += int(np.sum(np.abs(_statistics(method, first, second, chunk)) >= observed - _SLACK))
        count += len(chunk)
    return extreme / count if exact else (extreme + 1) / (count + 1)


def bootstrap_interval(
    x: ArrayLike, y: ArrayLike, method: Method, *, seed: int, level: float = 0.95, resamples: int = 2_000
) -> tuple[float, float]:
    """Percentile interval over resampled pairs; resamples with a constant side are left out (NaN if all are)."""
    first, second = _pairs(x, y)
    if not 0 < level < 1 or resamples < 1:
        raise ValueError("level must lie in (0, 1) and there must be at least one resample")
    n = first.size
    drawn = (random_bits(seed, resamples * n) % np.uint64(n)).astype(np.intp).reshape(resamples, n)
    measure: Callable[[ArrayLike, ArrayLike], float] = spearman if method == "spearman" else kendall
    values = np.array([measure(first[index], second[index]) for index in drawn])
    values = values[~np.isnan(values)]
    if not values.size:
        return math.nan, math.nan
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def correlate(x: ArrayLike, y: ArrayLike, method: Method, *, seed: int) -> Correlation:
    """Statistic, two-sided permutation p-value and 95 % bootstrap interval of `N` pairs."""
    first, second = _pairs(x, y)
    statistic = spearman(first, second) if method == "spearman" else kendall(first, second)
    low, high = bootstrap_interval(first, second, method, seed=seed)
    return Correlation(method, statistic, p_value(first, second, method, seed=seed), low, high, int(first.size))


def _vector(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or np.any(np.isnan(array)):
        raise ValueError("values must be a vector without NaN")
    return array


def _pairs(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    first, second = _vector(x), _vector(y)
    if first.size != second.size or first.size < 2:
        raise ValueError(f"a rank correlation needs two vectors of one length >= 2, not {first.size} and {second.size}")
    return first, second


def _statistics(method: Method, x: Floats, y: Floats, permutations: NDArray[np.intp]) -> Floats:
    """The statistic of (x, y[p]) for every row p of `permutations` [P, N]: float64 [P]."""
    if method == "spearman":
        rank_x, rank_y = average_ranks(x), average_ranks(y)
        a, b = rank_x - rank_x.mean(), rank_y - rank_y.mean()
        products = b[permutations] @ a
    else:
        i, j = np.triu_indices(x.size, 1)
        signs = np.sign(y[:, None] - y[None, :])
        a, b = np.sign(x[i] - x[j]), signs[i, j]
        products = signs[permutations[:, i], permutations[:, j]] @ a
    norm = math.sqrt(float(a @ a) * float(b @ b))
    if norm == 0.0:
        return np.full(len(permutations), np.nan)
    result: Floats = np.clip(products / norm, -1.0, 1.0)
    return result


def _all_permutations(n: int) -> Iterator[NDArray[np.intp]]:
    stream = itertools.permutations(range(n))
    while chunk := list(itertools.islice(stream, _CHUNK)):
        yield np.array(chunk, dtype=np.intp)


def _random_permutations(n: int, count: int, seed: int) -> Iterator[NDArray[np.intp]]:
    if count < 1:
        raise ValueError("there must be at least one permutation")
    orders = random_orders(seed, count, n)
    for start in range(0, count, _CHUNK):
        yield orders[start : start + _CHUNK]
