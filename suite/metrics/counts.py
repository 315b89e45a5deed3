"""Accuracy counts of one trial, and every accuracy and forgetting measure that follows from them.

Row t of a count matrix is taken after learning task t, column t' is the task tested (both from 0). Only the lower
triangle is filled: classes of later tasks are unknown to the learner. Stored are counts, not quotients, so that every
score can be recomputed exactly. All measures are fractions in [0, 1] (AFM and AR in [-1, 1]), float64.

GTEP counts items and CLDyB counts tasks: `acc` and `average_accuracy` differ as soon as tasks have unequal numbers of
held-out items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Fractions = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AccuracyCounts:
    """`correct` and `total`: int64 [T, T], T >= 1, zero above the diagonal, read-only.

    Raises ValueError unless both are integer square matrices of one size, every tested task has held-out items, and the
    held-out items of a task stay the same in every row.
    """

    correct: Counts
    total: Counts

    def __post_init__(self) -> None:
        for name in ("correct", "total"):
            object.__setattr__(self, name, _frozen(name, getattr(self, name)))
        if self.correct.shape != self.total.shape:
            raise ValueError(f"correct has shape {self.correct.shape}, total has shape {self.total.shape}")
        below = np.tri(self.tasks, dtype=bool)
        if np.any(self.total[below] < 1):
            raise ValueError("every tested task needs at least one held-out item")
        if np.any((np.diagonal(self.total)[None, :] != self.total)[below]):
            raise ValueError("the held-out items of a task must be the same after every task")
        if np.any(self.correct < 0) or np.any(self.correct > self.total):
            raise ValueError("correct must lie between 0 and total")

    @classmethod
    def from_rows(cls, correct: Sequence[Sequence[int]], total: Sequence[Sequence[int]]) -> AccuracyCounts:
        """From the rows of the lower triangle: row t (from 0) holds t + 1 integers."""
        return cls(_square("correct", correct), _square("total", total))

    @property
    def tasks(self) -> int:
        """T, the number of tasks learned."""
        return int(self.correct.shape[0])

    def rows(self) -> tuple[list[list[int]], list[list[int]]]:
        """The rows of both lower triangles, `correct` first, as plain integers: the inverse of `from_rows`."""
        lengths = range(1, self.tasks + 1)
        return ([self.correct[n - 1, :n].tolist() for n in lengths], [self.total[n - 1, :n].tolist() for n in lengths])

    def first(self, tasks: int) -> AccuracyCounts:
        """What was known after the first `tasks` tasks."""
        if not 1 <= tasks <= self.tasks:
            raise ValueError(f"tasks must lie between 1 and {self.tasks}, not be {tasks}")
        return AccuracyCounts(self.correct[:tasks, :tasks], self.total[:tasks, :tasks])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AccuracyCounts):
            return NotImplemented
        return np.array_equal(self.correct, other.correct) and np.array_equal(self.total, other.total)

    def __hash__(self) -> int:
        return hash((self.correct.tobytes(), self.total.tobytes()))


def _frozen(name: str, matrix: Counts) -> Counts:
    array = np.asarray(matrix)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, not {array.dtype}")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] == 0:
        raise ValueError(f"{name} must be a square matrix with at least one task, not of shape {array.shape}")
    if np.any(np.triu(array, 1)):
        raise ValueError(f"{name} must be zero above the diagonal: later tasks cannot be tested")
    copy = np.array(array, dtype=np.int64)
    copy.setflags(write=False)
    return copy


def _square(name: str, rows: Sequence[Sequence[int]]) -> Counts:
    square = np.zeros((len(rows), len(rows)), dtype=np.int64)
    for t, row in enumerate(rows):
        if len(row) != t + 1:
            raise ValueError(f"row {t} of {name} must hold {t + 1} counts, not {len(row)}")
        square[t, : t + 1] = np.asarray(row, dtype=np.int64)
    return square


def task_accuracy(counts: AccuracyCounts) -> Fractions:
    """Acc(T^t', f^t): float64 [T, T], NaN above the diagonal."""
    result = np.full(counts.correct.shape, np.nan)
    np.divide(counts.correct, counts.total, out=result, where=np.tri(counts.tasks, dtype=bool))
    return result


def acc(counts: AccuracyCounts) -> Fractions:
    """Acc_t: float64 [T], accuracy over ALL held-out items of tasks 1..t after task t (GTEP section 4.1)."""
    result: Fractions = counts.correct.sum(axis=1) / counts.total.sum(axis=1)
    return result


def final_acc(counts: AccuracyCounts) -> float:
    """Acc = Acc_T, accuracy over the whole held-out set after the last task (GTEP section 4.1)."""
    return float(acc(counts)[-1])


def avg_acc(counts: AccuracyCounts) -> float:
    """AvgAcc = (1/T) sum over t of Acc_t (GTEP section 4.1)."""
    return float(acc(counts).mean())


def average_accuracy(counts: AccuracyCounts) -> Fractions:
    """AA_t: float64 [T], mean over tasks t' <= t of Acc(T^t', f^t), every task weighing the same (CLDyB section 5)."""
    lower = np.nan_to_num(task_accuracy(counts), nan=0.0)
    result: Fractions = lower.sum(axis=1) / np.arange(1, counts.tasks + 1)
    return result


def afm(counts: AccuracyCounts) -> Fractions:
    """AFM_t: float64 [T], average forgetting measure (CLDyB eq. 1).

    AFM_t = 1/(t-1) sum over t' < t of Acc(T^t', f^t') - Acc(T^t', f^t), and AFM_1 = 0 since nothing is old yet. The
    reference is the accuracy right after learning, not the best so far: the measure is negative where a task improves.
    """
    matrix = task_accuracy(counts)
    learned = np.diagonal(matrix)
    result = np.zeros(counts.tasks)
    for t in range(1, counts.tasks):
        result[t] = np.mean(learned[:t] - matrix[t, :t])
    return result


def average_retention(counts: AccuracyCounts) -> Fractions:
    """AR_t = -AFM_t: float64 [T] (CLDyB section 5, footnote 1); equals backward transfer."""
    return 0.0 - afm(counts)


def ala(counts: AccuracyCounts) -> Fractions:
    """ALA_t = (1/t) sum over t' <= t of Acc(T^t', f^t'): float64 [T], average learning accuracy (CLDyB eq. 2)."""
    result: Fractions = np.cumsum(np.diagonal(task_accuracy(counts))) / np.arange(1, counts.tasks + 1)
    return result
