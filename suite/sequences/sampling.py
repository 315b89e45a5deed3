"""Greedy task sampling (CLDyB algorithm 1): tasks of K classes that are hard to tell apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suite.seeds import derive_seed, shuffled

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_ZERO_PRODUCT = -1e300  # log of a product with a zero factor: below every other free class, above every taken one


def greedy_tasks(potentials: Floats, classes_per_task: int, n_tasks: int, seed: int) -> Indices:
    """Sample tasks: int64 [J, K], row j holding the positions of the classes of task j in the order they were added.

    The first class of a task is uniformly random; then K - 1 times the class is added whose product of potentials
    with all classes of the task is largest (algorithm 1, lines 7 to 16). Products are sums of logarithms. A product
    with a zero factor is zero, so such a class is taken only when all that remain are zero too; the lowest position
    wins ties.

    The rest of a task follows from its first class, so first classes are drawn without replacement: a repeated one
    would only repeat a task. Therefore J = min(n_tasks, C). Two rows may still hold the same classes.

    `potentials`: float64 [C, C] (eq. 3). ValueError when K exceeds C.
    """
    count = len(potentials)
    if not 1 <= classes_per_task <= count:
        raise ValueError(f"a task of {classes_per_task} classes cannot be drawn from {count}")
    if n_tasks < 1:
        raise ValueError("at least one task must be drawn")
    with np.errstate(divide="ignore"):
        logs = np.log(potentials)
    first = np.array(shuffled(range(count), derive_seed("greedy tasks", seed))[:n_tasks], dtype=np.int64)
    rows = np.arange(len(first))
    tasks = np.empty((len(first), classes_per_task), dtype=np.int64)
    products = np.zeros((len(first), count))
    taken = np.zeros((len(first), count), dtype=bool)
    tasks[:, 0] = first
    for k in range(1, classes_per_task):
        taken[rows, tasks[:, k - 1]] = True
        products += logs[tasks[:, k - 1]]
        tasks[:, k] = np.argmax(np.where(taken, -np.inf, np.maximum(products, _ZERO_PRODUCT)), axis=1)
    return tasks


def distinct_tasks(rows: Indices, classes: NDArray[np.int64]) -> list[tuple[int, ...]]:
    """Rows of positions as sorted tuples of class numbers, every set of classes once, in order of first appearance."""
    return list(dict.fromkeys(tuple(sorted(int(c) for c in classes[row])) for row in rows))
