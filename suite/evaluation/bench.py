"""What all trials of a run share, and the small interfaces through which a trial sees cells and the journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from suite.data import DataSet, Task
from suite.errors import Interrupted
from suite.evaluation.events import Report
from suite.evaluation.plan import TrialSpec
from suite.protocol import Announcement, Backbone, Device, ImageShape, Manifest, SetupParams
from suite.sandbox import Cell, Launch
from suite.store.records import TaskRecord
from suite.tracks import Track


class Cells(Protocol):
    """Where ready cells come from: spares, or a cold start."""

    def prepare(self, launch: Launch, setup: SetupParams) -> None:
        """Begin to make the cell that the next `take` will want, if that disturbs nothing."""
        ...

    def take(self, launch: Launch, setup: SetupParams) -> tuple[Cell, float]:
        """A cell that answered `describe` and `setup`, paused, and the seconds that its preparation took."""
        ...


class TaskLog(Protocol):
    """The part of the journal that a trial writes."""

    def resume(self, trial: str) -> tuple[list[TaskRecord], Path | None]:
        """Tasks done so far and the state after the last of them."""
        ...

    def scratch(self, trial: str) -> Path:
        """An empty folder on the journal's file system, for a state on its way in."""
        ...

    def commit_task(self, trial: str, record: TaskRecord, state: Path) -> Path:
        """Make a task done: its record and its state, atomically; returns where the state lies now."""
        ...


@dataclass(frozen=True)
class Stop:
    """Asked between tasks; true once the user wants to stop."""

    asked: Callable[[], bool] = lambda: False

    def check(self) -> None:
        """Raise Interrupted if the user asked to stop."""
        if self.asked():
            raise Interrupted("Stopped after a finished task.", "The same command continues.")


@dataclass(frozen=True)
class Bench:
    """What all trials of a run share."""

    track: Track
    manifest: Manifest
    launch: Launch
    cells: Cells
    load: Callable[[str], DataSet]
    log: TaskLog
    run_key: bytes = field(repr=False)
    report: Report
    device: Device = "cpu"
    threads: int = 1
    backbone: Backbone | None = None
    is_exclusive: bool = True
    stop: Stop = Stop()


def setup_params(bench: Bench, spec: TrialSpec, data_set: DataSet, tasks: Sequence[Task]) -> SetupParams:
    """What every cell of a trial is set up with: no data, no phase, no name."""
    height, width, channels = data_set.image_shape
    known = bench.track.announces_tasks
    return SetupParams(
        device=bench.device,
        threads=bench.threads,
        image=ImageShape(height=height, width=width, channels=channels),
        hyperparameters=spec.key.hyperparameters,
        learner_seed=spec.learner_seed,
        announcement=Announcement(
            tasks=len(tasks) if known else None,
            classes_per_task=[len(t.ids) for t in tasks] if known else None,
        ),
        exemplars=bench.track.exemplars,
        first_task=bench.track.first_task,
        backbone=bench.backbone,
    )
