"""Scenarios: which classes arrive in which task (the generator F of GTEP, section 3.2). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from suite.errors import UsageError
from suite.seeds import derive_seed, shuffled

_PATTERN = re.compile(r"\s*(\d{1,6})\s*(?:\+\s*(\d{1,6})\s*x\s*(\d{1,6})\s*)?")
_EXAMPLE = "Write it as 'base + increment x further tasks', e.g. '5 + 5x9' for ten tasks of five classes."


@dataclass(frozen=True)
class Scenario:
    """`base` classes first, then `increment` classes in each of the other `num_tasks - 1` tasks."""

    base: int
    increment: int
    num_tasks: int

    def __post_init__(self) -> None:
        """Refuse a scenario with an empty task."""
        if self.base < 1 or self.num_tasks < 1 or (self.num_tasks > 1 and self.increment < 1):
            raise UsageError(f"Scenario {self} has a task without classes.", _EXAMPLE)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read '5 + 5x9' (ten tasks) or '10' (one task). Raises UsageError."""
        match = _PATTERN.fullmatch(text)
        if match is None:
            raise UsageError(f"{text!r} is not a scenario.", _EXAMPLE)
        base, increment, further = (int(part or 0) for part in match.groups())
        return cls(base, increment, 1 + further)

    def __str__(self) -> str:
        return f"{self.base} + {self.increment}x{self.num_tasks - 1}" if self.num_tasks > 1 else str(self.base)

    @property
    def class_count(self) -> int:
        """Classes in all tasks together."""
        return self.base + self.increment * (self.num_tasks - 1)

    @property
    def task_sizes(self) -> tuple[int, ...]:
        """Classes of each task."""
        return (self.base, *[self.increment] * (self.num_tasks - 1))


@dataclass(frozen=True)
class Task:
    """One task. `classes` are indices in the data set; `ids`, alongside, are what the learner calls them."""

    index: int  # 0-based
    classes: tuple[int, ...]
    ids: tuple[int, ...]


class Generator(Protocol):
    """F: from the number of classes of a data set to a sequence of tasks, given a scenario seed."""

    def __call__(self, class_count: int, scenario: Scenario, seed: int) -> list[Task]:
        """Tasks in order of arrival. Deterministic."""


def class_incremental(class_count: int, scenario: Scenario, seed: int) -> list[Task]:
    """Disjoint tasks that together hold every class once, in an order drawn from `seed`.

    Ids are numbers in order of arrival, so task t's are consecutive. Raises UsageError unless the scenario
    takes exactly the classes there are: taking some would make the set of classes depend on the seed.
    """
    if scenario.class_count != class_count:
        raise UsageError(
            f"Scenario {scenario} takes {scenario.class_count} classes, but the data set has {class_count}.",
            f"Name a fixed subset of the data set, as in 'letters-1:{scenario.class_count}', or change the scenario.",
        )
    order = shuffled(range(class_count), seed)
    tasks, start = [], 0
    for index, size in enumerate(scenario.task_sizes):
        ids = range(start, start + size)
        tasks.append(Task(index, tuple(order[i] for i in ids), tuple(ids)))
        start += size
    return tasks


GENERATORS: dict[str, Generator] = {"class_incremental": class_incremental}


def build_scenario(class_count: int, scenario: Scenario, seed: int, generator: str = "class_incremental") -> list[Task]:
    """The tasks of `scenario` over `class_count` classes. Raises UsageError for an unknown generator."""
    if generator not in GENERATORS:
        raise UsageError(f"Unknown scenario generator {generator!r}.", f"Choose one of {sorted(GENERATORS)}.")
    return GENERATORS[generator](class_count, scenario, seed)


def scenario_seed(track: str, phase: str, data_set: str, seed_index: int) -> int:
    """The seed of a class order: of these four only, hence equal for every submission and draw (DESIGN 4)."""
    return derive_seed(track, phase, data_set, seed_index)


def seen_classes(tasks: Sequence[Task]) -> dict[int, int]:
    """Learner's id -> class index in the data set, over all of `tasks`."""
    return {name: index for task in tasks for name, index in zip(task.ids, task.classes, strict=True)}
