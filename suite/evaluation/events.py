"""What the user is told while a submission runs; a display turns these into lines or a live table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from suite.evaluation.plan import TrialSpec
from suite.store.records import Attempt, Phase, Selection, TaskRecord, TrialRecord


@dataclass(frozen=True)
class NewRun:
    """A run begins or goes on; `because` says why no earlier run of the submission could be continued."""

    run: str
    because: str = ""


@dataclass(frozen=True)
class Prepared:
    """An embedded data set was prepared on the way."""

    data_set: str


@dataclass(frozen=True)
class PhaseStarted:
    """A phase begins; `done` of its `trials` were found in the journal."""

    phase: Phase
    trials: int
    done: int


@dataclass(frozen=True)
class TrialStarted:
    """A trial begins, or goes on after `resumed_tasks` tasks found in the journal."""

    spec: TrialSpec
    tasks: int
    resumed_tasks: int


@dataclass(frozen=True)
class Epoch:
    """The learner's own word on how far it is; display only."""

    spec: TrialSpec
    task: int
    epoch: int | None
    epochs: int | None
    note: str


@dataclass(frozen=True)
class TaskDone:
    """A task is learned, tested and in the journal."""

    spec: TrialSpec
    record: TaskRecord


@dataclass(frozen=True)
class TrialDone:
    """A trial ended, scored or failed."""

    record: TrialRecord


@dataclass(frozen=True)
class Retried:
    """The machine failed; the trial is tried again."""

    spec: TrialSpec
    attempt: Attempt


@dataclass(frozen=True)
class MergeDelayed:
    """The database could not be written; the journal has everything, and the next merge brings it in."""

    message: str


@dataclass(frozen=True)
class Selected:
    """Tuning is over."""

    selection: Selection


Event: TypeAlias = (
    NewRun | Prepared | PhaseStarted | TrialStarted | Epoch | TaskDone | TrialDone | Retried | MergeDelayed | Selected
)
Report: TypeAlias = Callable[[Event], None]
