"""A toy environment: learners whose accuracies follow a formula, so that the best sequence can be worked out by hand.

Accuracy of a task right after it is learned is 1 - its hardness - what earlier tasks interfere with it; every later
task takes away what it interferes. Hardness is a number per class, interference a number per ordered pair of classes;
a task takes the mean over its classes or pairs. Nothing is random: states are lists of tasks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from suite.seeds import content_hash
from suite.sequences.environment import INITIAL, Hits, Part, Path, Task

Floats = NDArray[np.float64]

ITEMS = 10_000
"""Held-out items per task: accuracies are fractions of it."""


@dataclass(frozen=True, eq=False)
class ToyWorld:
    """`hardness` [C], `blocking` [C, C] and `forgetting` [C, C] (earlier, later), `features` [C, D]; all float64."""

    hardness: Floats
    blocking: Floats
    forgetting: Floats
    features: Floats
    _means: dict[tuple[str, Task, Task], float] = field(default_factory=dict, init=False, repr=False)

    @property
    def identity(self) -> str:
        """Content hash."""
        return content_hash([each.tolist() for each in (self.hardness, self.blocking, self.forgetting, self.features)])

    def accuracy(self, path: Path, tested: int) -> float:
        """Acc(T^t', f^t) of task `tested` (from 0) after the whole of `path`, in [0, 1]."""
        task = path[tested]
        value = 1.0 - float(self.hardness[list(task)].mean())
        value -= sum(self._between("blocking", earlier, task) for earlier in path[:tested])
        value -= sum(self._between("forgetting", task, later) for later in path[tested + 1 :])
        return min(1.0, max(0.0, value))

    def _between(self, kind: Literal["blocking", "forgetting"], earlier: Task, later: Task) -> float:
        key = (kind, earlier, later)
        if key not in self._means:
            matrix = self.blocking if kind == "blocking" else self.forgetting
            self._means[key] = float(matrix[np.ix_(list(earlier), list(later))].mean())
        return self._means[key]


def random_world(classes: int, seed: int, dimensions: int = 6) -> ToyWorld:
    """Classes scattered in a feature space: similar ones are harder together, block and overwrite each other."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(classes, dimensions)) + 0.5
    directions = features / np.linalg.norm(features, axis=1, keepdims=True)
    similar = np.clip(directions @ directions.T, 0.0, 1.0)
    np.fill_diagonal(similar, 0.0)
    scatter = generator.random((2, classes, classes))
    hardness = 0.1 + 0.3 * generator.random(classes)
    return ToyWorld(hardness, 0.1 * similar * scatter[0], 0.5 * similar * scatter[1], features)


class StateShelf(Protocol):
    """Where toy states lie: a dictionary or a folder."""

    def __contains__(self, name: object, /) -> bool: ...

    def __getitem__(self, name: str, /) -> list[list[int]]: ...

    def __setitem__(self, name: str, tasks: list[list[int]], /) -> None: ...

    def pop(self, name: str, default: None, /) -> object: ...


class FolderShelf:
    """States as files, each written whole or not at all."""

    def __init__(self, folder: FilePath) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def __contains__(self, name: object) -> bool:
        return (self._folder / str(name)).is_file()

    def __getitem__(self, name: str) -> list[list[int]]:
        tasks: list[list[int]] = json.loads((self._folder / name).read_text("utf-8"))
        return tasks

    def __setitem__(self, name: str, tasks: list[list[int]]) -> None:
        part = self._folder / f"{name}.{os.getpid()}.part"
        part.write_text(json.dumps(tasks), "utf-8")
        part.replace(self._folder / name)

    def pop(self, name: str, default: None) -> object:
        """Delete a state if it is there."""
        (self._folder / name).unlink(missing_ok=True)
        return default


class ToyLearner:
    """A learner in a `ToyWorld`; counts what is asked of it."""

    def __init__(self, world: ToyWorld, name: str = "toy", states: StateShelf | None = None) -> None:
        self._world, self._name = world, name
        self._fingerprint = content_hash(["toy", name, world.identity])
        self.states: StateShelf = states if states is not None else dict[str, list[list[int]]]()
        self.learn_calls = 0

    @property
    def name(self) -> str:
        """A short name for people."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """Identity of world and name."""
        return self._fingerprint

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """None."""
        return {}

    def has(self, state: str) -> bool:
        """Whether the state is stored."""
        return state == INITIAL or state in self.states

    def learn(self, parent: str, task: Task, state: str) -> float:
        """Append `task` to the tasks of `parent`. Takes no time worth measuring: 1 second by decree."""
        self.learn_calls += 1
        self.states[state] = [*self._tasks(parent), list(task)]
        return 1.0

    def score(self, state: str, tasks: Sequence[Task]) -> list[Hits]:
        """Accuracies of the world, as counts out of `ITEMS`."""
        path = tuple(tuple(task) for task in self._tasks(state))
        if path != tuple(tasks):
            raise ValueError("a state is scored on the tasks that it has learned")
        return [(round(ITEMS * self._world.accuracy(path, tested)), ITEMS) for tested in range(len(path))]

    def embed(self, state: str, classes: Sequence[int], part: Part, limit: int) -> list[NDArray[Any]]:
        """A few fixed images around the feature of each class, drifting a little with every task learned."""
        drift = 0.05 * len(self._tasks(state))
        offsets = np.arange(1, min(limit, 4) + 1)[:, None] * (0.03 if part == "train" else 0.04)
        return [self._world.features[c] + offsets * np.roll(self._world.features[c], 1) + drift for c in classes]

    def discard(self, state: str) -> None:
        """Delete a state."""
        self.states.pop(state, None)

    def _tasks(self, state: str) -> list[list[int]]:
        return [] if state == INITIAL else self.states[state]
