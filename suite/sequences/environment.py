"""What the search sees of learners: a small interface on immutable states, named by what was learned.

A state never changes, so it is fully described by the learner and the tasks it has learned, in order. Its name is a
hash of just that; nothing else has to be remembered to find it again after an interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

from numpy.typing import NDArray

from suite.seeds import content_hash

Task: TypeAlias = tuple[int, ...]
"""Numbers of the classes of one task in the pool, ascending."""

Path: TypeAlias = tuple[Task, ...]
"""Tasks in the order in which they are learned; the empty path is the learner before its first task."""

Part: TypeAlias = Literal["train", "held_out"]

Hits: TypeAlias = tuple[int, int]
"""Correctly predicted held-out items, and all of them."""

INITIAL = ""
"""The name of f^0, the state before the first task: every learner has it, always."""


class SearchLearner(Protocol):
    """One of the M learners of a search (A_m and f_m of the paper).

    All of it must be a function of the arguments and the fingerprint: learning the same task from the same state twice
    gives states that score alike. States appear whole or not at all, also when the process is killed.
    """

    @property
    def name(self) -> str:
        """A short name for people."""

    @property
    def fingerprint(self) -> str:
        """Identity of the learner's code, hyperparameters, seed and data: whatever its scores depend on."""

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """JSON values."""

    def has(self, state: str) -> bool:
        """Whether the state is stored."""

    def learn(self, parent: str, task: Task, state: str) -> float:
        """Learn `task` from `parent` and store the outcome as `state`; `parent` stays as it is. Returns seconds."""

    def score(self, state: str, tasks: Sequence[Task]) -> list[Hits]:
        """Hits on the held-out items of each task, predicting among the classes of all `tasks` together."""

    def embed(self, state: str, classes: Sequence[int], part: Part, limit: int) -> list[NDArray[Any]]:
        """Features [N_c, D] of at most `limit` images of each class, always the same ones, at least one."""

    def discard(self, state: str) -> None:
        """Delete a stored state; nothing happens when it is not there."""


def state_name(fingerprint: str, path: Path) -> str:
    """The name of what a learner knows after `path`."""
    return content_hash(["state", fingerprint, [list(task) for task in path]]) if path else INITIAL
