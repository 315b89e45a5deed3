"""Learning-rate schedules as pure functions of the epoch, and the settings a training stage runs with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from suite.protocol.messages import FirstTask

Kind = Literal["step", "cosine", "constant"]


def spread_milestones(epochs: int, count: int) -> tuple[int, ...]:
    """The rule of GTEP, appendix A.1: epochs * 2k / (2 count + 1) for k = 1 .. count, truncated.

    >>> spread_milestones(70, 2)
    (28, 56)
    """
    return tuple(epochs * 2 * k // (2 * count + 1) for k in range(1, count + 1))


def read_milestones(value: int | str, epochs: int) -> tuple[int, ...]:
    """Milestones from the hyperparameter `num_milestones`: a count (spread by the rule) or literal epochs as text.

    >>> read_milestones("30 50", 70)
    (30, 50)
    """
    return tuple(map(int, value.split())) if isinstance(value, str) else spread_milestones(epochs, value)


@dataclass(frozen=True)
class Schedule:
    """The learning rate of each epoch: piecewise constant, half a cosine down to 0, or constant."""

    kind: Kind
    epochs: int
    lr: float
    milestones: tuple[int, ...] = ()
    decay: float = 1.0

    def lr_at(self, epoch: int) -> float:
        """Learning rate of `epoch` (0 is the first)."""
        if self.kind == "cosine":
            return self.lr * 0.5 * (1 + math.cos(math.pi * epoch / self.epochs))
        if self.kind == "step":
            return self.lr * self.decay ** sum(epoch >= m for m in self.milestones)
        return self.lr


@dataclass(frozen=True)
class Recipe:
    """How one training stage optimises."""

    schedule: Schedule
    batch_size: int
    weight_decay: float
    optimizer: str = "sgd"
    momentum: float = 0.9

    @classmethod
    def of(cls, point: Mapping[str, Any]) -> Self:
        """From drawn hyperparameters (`epochs`, `lr`, `scheduler`, `num_milestones`, `lr_decay`, ...)."""
        kind, epochs = point["scheduler"], point["epochs"]
        milestones = read_milestones(point["num_milestones"], epochs) if kind == "step" else ()
        schedule = Schedule(kind, epochs, point["lr"], milestones, point.get("lr_decay", 1.0))
        return cls(schedule, point["batch_size"], point["weight_decay"], point.get("optimizer", "sgd"))

    def for_first_task(self, first: FirstTask | None) -> Self:
        """The fixed settings of the first task (GTEP, table 3); batch size and kind of schedule stay as drawn."""
        if first is None:
            return self
        schedule = Schedule(self.schedule.kind, first.epochs, first.lr, tuple(first.milestones), first.lr_decay)
        return replace(self, schedule=schedule, weight_decay=first.weight_decay)

    def rescaled(self, *, epochs: int | None = None, lr: float | None = None, kind: Kind | None = None) -> Self:
        """The same recipe with another length, base learning rate or kind of schedule."""
        given = {"epochs": epochs, "lr": lr, "kind": kind}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return replace(self, schedule=replace(self.schedule, **changes))
