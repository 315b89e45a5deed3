"""The tree of one step of a search: candidates at its root, look-ahead below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from suite.sequences.environment import Path, Task
from suite.sequences.explorer import Explorer
from suite.sequences.rewards import discounted
from suite.sequences.settings import SearchSettings

FreshTasks = Callable[[Path, int], list[Task]]
"""(path, n) -> at most n tasks of classes that `path` does not hold; at least one if there are classes enough."""


@dataclass(frozen=True)
class StepTree:
    """What may be learned from the state after `root`, down to `depth` further tasks after the candidate itself.

    Deviation from eq. 6, for its cost: inner nodes do not embed the pool in their own states. Their tasks are the
    candidates of the step that share no class with the path, topped up to `children` (at least 1) by `fresh`, which
    samples from the embeddings of the root.
    """

    root: Path
    candidates: tuple[Task, ...]
    depth: int
    children: int | None
    fresh: FreshTasks
    _next: dict[Path, list[Task]] = field(default_factory=dict)

    def tasks_after(self, path: Path) -> list[Task]:
        """Tasks that may follow `path`, which starts with `root`; the same ones at every call."""
        if path == self.root:
            return list(self.candidates)
        if path not in self._next:
            seen = {label for task in path for label in task}
            tasks = [task for task in self.candidates if seen.isdisjoint(task)]
            wanted = self.children or 1
            if len(tasks) < wanted:
                known = set(tasks)
                tasks += [task for task in self.fresh(path, wanted - len(tasks)) if task not in known]
            self._next[path] = tasks
        return self._next[path]

    @property
    def horizon(self) -> int:
        """Length of a path that is evaluated in full."""
        return len(self.root) + 1 + self.depth

    def value(self, explorer: Explorer, path: Path, discount: float) -> float:
        """Discounted rewards along `path` from the root on: the Q of eq. 6 for one line."""
        steps = range(len(self.root) + 1, len(path) + 1)
        return discounted([explorer.reward(path[:t]) for t in steps], discount)


@dataclass
class Valued:
    """A candidate of a step: its immediate reward, and its Q with the line that attains it once that is known."""

    task: Task
    reward: float
    value: float | None = None
    line: Path = ()


def depth_at(settings: SearchSettings, learned: int) -> int:
    """Look-ahead when `learned` tasks are learned: it does not go beyond the last task of the sequence.

    Eq. 5 has no end; with one, forgetting that happens after it has no part in the result.
    """
    return max(0, min(settings.look_ahead, settings.tasks - learned - 1))
