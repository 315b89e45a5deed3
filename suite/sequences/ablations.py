"""What takes the place of a part of the pipeline in its ablations (CLDyB section 5.2): (a), (b) and (d).

Ablation (c) has no code of its own: it leaves the clustering out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from suite.seeds import Counter, derive_seed, shuffled
from suite.sequences.environment import Path, Task
from suite.sequences.potentials import cosine_similarities


def random_task(free: Sequence[int], size: int, seed: int) -> Task:
    """`size` of the classes `free`, uniformly."""
    return tuple(sorted(shuffled(free, derive_seed("random task", seed))[:size]))


def random_path(first: Task, classes: int, tasks: int, seed: int) -> Path:
    """(a) After the first task every task is uniformly random among the classes left: the usual scenario."""
    path: Path = (first,)
    while len(path) < tasks:
        seen = {label for task in path for label in task}
        free = [label for label in range(classes) if label not in seen]
        path = (*path, random_task(free, len(first), derive_seed(seed, len(path))))
    return path


def uniform_tasks(free: Sequence[int], sources: Sequence[str], size: int, wanted: int, seed: int) -> list[Task]:
    """(b) Instead of greedy sampling: at most `wanted` distinct tasks, each of `size` classes of one data set.

    First a data set is drawn, then its classes, both uniformly. Where no data set has `size` free classes left, classes
    are drawn from all.
    """
    by_source: dict[str, list[int]] = {}
    for label in free:
        by_source.setdefault(sources[label], []).append(label)
    groups = [labels for labels in by_source.values() if len(labels) >= size] or [list(free)]
    counter = Counter(derive_seed("uniform tasks", seed))
    drawn = (random_task(groups[counter.below(len(groups))], size, derive_seed(seed, draw)) for draw in range(wanted))
    return list(dict.fromkeys(drawn))


def most_similar(candidates: Sequence[Sequence[ArrayLike]], encountered: Sequence[ArrayLike]) -> int:
    """(d) Instead of a search: position of the candidate most similar to what was learned, the earlier one on a tie.

    `candidates`: for each of them, and `encountered`: for each of M learners, prototypes [K, D_m] and [seen, D_m].
    Similarity is the mean cosine between new and encountered classes, averaged over learners.
    """
    if not candidates or any(len(each) != len(encountered) for each in candidates):
        raise ValueError("every candidate needs prototypes by each learner")
    similarity = [
        np.mean([cosine_similarities(new, old).mean() for new, old in zip(each, encountered, strict=True)])
        for each in candidates
    ]
    return int(np.argmax(similarity))
