"""One task of one trial: learned in a fresh cell, tested in cells of their own (DESIGN 3, G3 to G5)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suite.data import DataSet, Task, seen_classes, write_company, write_items, write_task
from suite.errors import LearnerError, ProtocolError
from suite.evaluation.answers import checked
from suite.evaluation.bench import Bench, setup_params
from suite.evaluation.budget import learn_seconds, predict_seconds, used_seconds
from suite.evaluation.clock import StageClock
from suite.evaluation.events import Epoch
from suite.evaluation.folders import copy_folder, fresh
from suite.evaluation.plan import TrialSpec
from suite.evaluation.scoring import agreement, count_correct, read_predictions
from suite.metrics import memory_b4
from suite.protocol import (
    LearnParams,
    LearnResult,
    PredictParams,
    PredictResult,
    Progress,
    SetupParams,
    StateSummary,
    summarise_state,
)
from suite.seeds import permutation_key
from suite.status import Status
from suite.store.files import hash_state
from suite.store.records import Resources, TaskRecord

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class TaskRun:
    """One task of one trial: learn, keep the state, predict, count."""

    bench: Bench
    spec: TrialSpec
    data_set: DataSet
    tasks: Sequence[Task]
    task: Task
    before: Sequence[TaskRecord]

    def run(self, state: Path | None) -> tuple[TaskRecord, Path]:
        """The record of the task and a folder with its new state."""
        scratch = self.bench.log.scratch(self.spec.key.id)
        learned, resources = self._learn(state, scratch)
        new_state = scratch / "state"
        summary = self._check_state(new_state)
        correct, total, alike, resources = self._test(new_state, scratch, resources)
        exemplars = sum(learned.exemplars.values())
        record = TaskRecord(
            task=self.task.index,
            classes=[self.data_set.class_names[i] for i in self.task.classes],
            correct=correct,
            total=total,
            resources=resources,
            state_bytes=summary.bytes,
            state_files=summary.files,
            state_elements=summary.elements,
            state_hash=hash_state(new_state),
            stored_parameters=learned.stored_parameters,
            trainable_parameters=learned.trainable_parameters,
            exemplars=exemplars,
            memory_b4_bytes=memory_b4(learned.stored_parameters, exemplars),
            agreement=alike,
            metrics=learned.metrics,
        )
        return record, new_state

    def setup(self) -> SetupParams:
        """What its cells are set up with."""
        return setup_params(self.bench, self.spec, self.data_set, self.tasks)

    def _learn(self, state: Path | None, scratch: Path) -> tuple[LearnResult, Resources]:
        seconds = learn_seconds(self.bench.track.budgets, used_seconds(self.before))
        cell, setup_seconds = self.bench.cells.take(self.bench.launch, self.setup())
        with closing(cell):
            with cell.delivery("data") as folder:
                write_task(self.data_set, self.task, folder)
                if past := self._past():
                    write_task(self.data_set, past, folder)
            if state is not None:
                with cell.delivery("state") as folder:
                    copy_folder(state, folder)
            params = LearnParams(
                task=self.task.index,
                classes=list(self.task.ids),
                past_classes=list(past.ids) if past else [],
                data=cell.inside.data,
                state=cell.inside.state if state is not None else None,
                out=cell.inside.out,
                seconds_left=round(seconds, 3),
            )
            clock = StageClock(self._on_progress)
            self.bench.cells.prepare(self.bench.launch, self.setup())
            cell.resume(self.bench.launch.cpuset)
            clock.start()
            answer = cell.call("learn", params, seconds, clock.note)
            train, post = clock.stop()
            result = checked(answer, LearnResult)
            usage = cell.usage()
            cell.collect(fresh(scratch / "state"))
        if unknown := set(result.exemplars) - set(seen_classes(self.tasks[: self.task.index + 1])):
            raise ProtocolError(
                f"The learner reports exemplars of classes {sorted(unknown)[:5]}, which it has not seen."
            )
        return result, Resources(
            train_seconds=train,
            post_seconds=post,
            setup_seconds=setup_seconds,
            cpu_seconds=usage.cpu_seconds,
            peak_memory_bytes=usage.peak_memory_bytes,
            peak_gpu_bytes=usage.peak_gpu_bytes,
            energy_joules=usage.energy_joules,
        )

    def _on_progress(self, progress: Progress) -> None:
        self.bench.report(Epoch(self.spec, self.task.index, progress.epoch, progress.epochs, progress.note))

    def _past(self) -> Task | None:
        """All earlier classes as one task, for a learner with the privilege to see them again."""
        earlier = seen_classes(self.tasks[: self.task.index])
        if "past_data" not in self.bench.manifest.privileges or not earlier:
            return None
        current = set(self.task.ids)
        ids = tuple(i for i in earlier if i not in current)
        return Task(self.task.index, tuple(earlier[i] for i in ids), ids)

    def _check_state(self, folder: Path) -> StateSummary:
        summary = summarise_state(folder)
        limit = self.bench.track.budgets.state_bytes
        if summary.bytes > limit:
            raise LearnerError(
                Status.STATE_TOO_LARGE,
                f"The state after task {self.task.index + 1} takes {summary.bytes} bytes of {limit} (state_bytes).",
                "Store fewer exemplars or parameters.",
            )
        return summary

    def _test(
        self, state: Path, scratch: Path, resources: Resources
    ) -> tuple[list[int], list[int], float | None, Resources]:
        """Counts per task tested, agreement after the last task, and the resources with prediction time added."""
        done = self.tasks[: self.task.index + 1]
        classes = seen_classes(done)
        key = permutation_key(self.bench.run_key, self.spec.key.id, self.task.index)
        used = used_seconds(self.before) + resources.train_seconds + resources.post_seconds
        request = _Request(self, state, scratch, len(classes))
        labels, first, seconds = request.predict(
            lambda to: write_items(self.data_set, classes, key, to), used, is_followed=True
        )
        task_of = {class_id: t.index for t in done for class_id in t.ids}
        correct, total = count_correct(first, labels, task_of, len(done))
        alike = None
        if self.task.index == len(self.tasks) - 1:
            positions, second, _ = request.predict(
                lambda to: write_company(self.data_set, classes, key, to), used, is_followed=False
            )
            alike = agreement(first, second, positions)
            if alike < self.bench.track.agreement:
                raise LearnerError(
                    Status.BATCH_DEPENDENT,
                    f"Only {alike:.2%} of the items were predicted alike in other company; "
                    f"{self.bench.track.agreement:.0%} must be.",
                    "Predict each item by itself: no batch statistics, clustering or balancing over the request.",
                )
        return correct, total, alike, resources.model_copy(update={"predict_seconds": seconds})


@dataclass(frozen=True)
class _Request:
    """Prediction requests against one state, each in a cell of its own."""

    run: TaskRun
    state: Path
    scratch: Path
    classes: int

    def predict(
        self, write: Callable[[Path], IntArray], used: float, *, is_followed: bool
    ) -> tuple[IntArray, IntArray, float]:
        """What `write` returned (labels or positions), the predictions for the items it wrote, and the seconds.

        `is_followed`: whether the trial will want another cell.
        """
        bench = self.run.bench
        seconds = predict_seconds(bench.track.budgets, used)
        cell, _ = bench.cells.take(bench.launch, self.run.setup())
        with closing(cell):
            with cell.delivery("items") as folder:
                known = write(folder)
            with cell.delivery("state") as folder:
                copy_folder(self.state, folder)
            params = PredictParams(
                items=f"{cell.inside.items}/items.npy",
                count=len(known),
                classes=self.classes,
                task=self.run.task.index,
                state=cell.inside.state,
                out=cell.inside.out,
                seconds_left=round(seconds, 3),
            )
            if is_followed:
                bench.cells.prepare(bench.launch, self.run.setup())
            cell.resume(bench.launch.cpuset)
            start = time.monotonic()
            checked(cell.call("predict", params, seconds), PredictResult)
            took = time.monotonic() - start
            out = fresh(self.scratch / "scores")
            cell.collect(out)
        predictions = read_predictions(out / "scores.npy", len(known), self.classes)
        shutil.rmtree(out)
        return known, predictions, took
