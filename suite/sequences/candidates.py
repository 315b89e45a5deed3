"""Candidates for the next task (stage A of CLDyB): greedy tasks from embeddings, reduced by functional clustering."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suite.seeds import derive_seed, shuffled
from suite.sequences.ablations import most_similar, uniform_tasks
from suite.sequences.clustering import ancestral_sample, cluster_tasks, knn_nll
from suite.sequences.environment import Part, Path, Task
from suite.sequences.explorer import Explorer
from suite.sequences.potentials import Floats, class_potentials, cosine_similarities, prototype
from suite.sequences.sampling import distinct_tasks, greedy_tasks
from suite.sequences.settings import SearchSettings

_CLASSES_AT_ONCE = 64  # embeddings are reduced to prototypes in portions: a pool of thousands of classes fits in memory


class StageA:
    """Proposes tasks in the states after a path. `sources`: the data set of each class of the pool, by class number."""

    def __init__(self, explorer: Explorer, sources: Sequence[str], settings: SearchSettings, seed: int) -> None:
        self._explorer, self._sources, self._settings, self._seed = explorer, sources, settings, seed
        self._root: Path | None = None
        self._prototypes: list[dict[int, Floats]] = []

    def free(self, path: Path) -> list[int]:
        """Numbers of the classes that no task of `path` holds, ascending: tasks of a sequence share no class."""
        seen = {label for task in path for label in task}
        return [label for label in range(len(self._sources)) if label not in seen]

    def candidates(self, path: Path, wanted: int, known: Collection[Task] = ()) -> list[Task]:
        """At most `wanted` tasks for the states after `path`, none of them in `known` (algorithms 1 and 2)."""
        settings = self._settings
        tasks = [task for task in self._drawn(path, path, settings.n_greedy, "step") if task not in set(known)]
        if not tasks:
            return []
        if settings.strategy == "unclustered":
            return shuffled(tasks, self._key("unclustered", path))[:wanted]
        labels = cluster_tasks(self._functional_vectors(path, tasks), settings.n_clusters, self._key("clusters", path))
        return [tasks[position] for position in ancestral_sample(labels, wanted, self._key("candidates", path))]

    def fresh(self, root: Path, path: Path, wanted: int) -> list[Task]:
        """At most `wanted` further tasks for an inner node `path`, from the embeddings in the states after `root`."""
        return self._drawn(root, path, wanted, "inner node")

    def most_similar(self, path: Path, tasks: Sequence[Task]) -> int:
        """Position of the task most similar to those of `path` in the states after it (ablation d of section 5.2)."""
        prototypes = self._embedded(path)
        seen = sorted(label for task in path for label in task)
        candidates = [[np.stack([each[label] for label in task]) for each in prototypes] for task in tasks]
        return most_similar(candidates, [np.stack([each[label] for label in seen]) for each in prototypes])

    def _drawn(self, root: Path, path: Path, wanted: int, purpose: str) -> list[Task]:
        """Distinct tasks of the classes that are free after `path`: greedy, or uniform within data sets."""
        free, size = self.free(path), self._settings.classes_per_task
        if len(free) < size:
            return []
        if self._settings.strategy == "uniform":
            return uniform_tasks(free, self._sources, size, wanted, self._key(f"uniform {purpose}", path))
        prototypes = self._embedded(root)
        similarities = [cosine_similarities([each[label] for label in free]) for each in prototypes]
        rows = greedy_tasks(class_potentials(similarities), size, wanted, self._key(f"greedy {purpose}", path))
        return distinct_tasks(rows, np.array(free))

    def _embedded(self, root: Path) -> list[dict[int, Floats]]:
        """For each learner, prototypes by class after `root`: of the free classes, or of all to compare tasks."""
        if self._root != root:
            compares = self._settings.strategy == "similar"
            classes = list(range(len(self._sources))) if compares else self.free(root)
            self._prototypes = [self._class_prototypes(m, root, classes) for m in self._learners]
            self._root = root
        return self._prototypes

    def _class_prototypes(self, m: int, root: Path, classes: Sequence[int]) -> dict[int, Floats]:
        found: dict[int, Floats] = {}
        for start in range(0, len(classes), _CLASSES_AT_ONCE):
            portion = classes[start : start + _CLASSES_AT_ONCE]
            embedded = self._explorer.embed(m, root, portion, "train", self._settings.images_per_class)
            found |= {label: prototype(features) for label, features in zip(portion, embedded, strict=True)}
        return found

    def _functional_vectors(self, path: Path, tasks: Sequence[Task]) -> Floats:
        """G of algorithm 2: float64 [J, M]."""
        settings = self._settings
        used = sorted({label for task in tasks for label in task})
        vectors = np.zeros((len(tasks), len(self._learners)))
        for m in self._learners:
            train, queries = self._by_class(m, path, used, "train"), self._by_class(m, path, used, "held_out")
            for j, task in enumerate(tasks):
                features = [train[label] for label in task], [queries[label] for label in task]
                vectors[j, m] = knn_nll(*features, neighbours=settings.neighbours, epsilon=settings.epsilon)
        return vectors

    def _by_class(self, m: int, path: Path, used: Sequence[int], part: Part) -> dict[int, NDArray[Any]]:
        embedded = self._explorer.embed(m, path, used, part, self._settings.images_per_class)
        return dict(zip(used, embedded, strict=True))

    @property
    def _learners(self) -> range:
        return range(len(self._explorer.learners))

    def _key(self, purpose: str, path: Path) -> int:
        return derive_seed(purpose, self._seed, [list(task) for task in path])
