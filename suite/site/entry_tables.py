"""The tables of a run's page: what was chosen, what came of it, what it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suite.metrics import afm, ala, avg_acc, final_acc, summarise, task_accuracy
from suite.protocol import Space
from suite.site import figures
from suite.site.table import Column, Table
from suite.site.text import clean, file_name
from suite.status import Status
from suite.store import EntrySummary, SetSummary, TrialRecord
from suite.store.rows import counts_of


def hyperparameters(entry: EntrySummary) -> Table:
    """The selected values beside what they were drawn from."""
    chosen = entry.selection.hyperparameters if entry.selection else entry.info.lock.hyperparameters
    space = Space(dict(entry.info.lock.manifest.space.root)).replaced(entry.track.space)
    names = [*space.root, *(name for name in chosen or {} if name not in space.root)]
    rows = [
        {
            "name": name,
            "value": figures.value(chosen[name]) if chosen and name in chosen else None,
            "space": figures.dimension(space.root[name]) if name in space.root else None,
            "by": "track" if name in entry.track.space else "learner",
        }
        for name in names
    ]
    return Table(
        id="hyperparameters",
        caption="Hyperparameters",
        columns=[
            Column("name", "Name", "code"),
            Column("value", "Selected", "code"),
            Column("space", "Drawn from"),
            Column("by", "Range set by"),
        ],
        rows=rows,
        note="A dash: it does not apply to the selected values, or nothing was selected.",
        is_sortable=False,
    )


def draws(entry: EntrySummary) -> Table:
    """Every tuning draw, the selected one marked."""
    selected = entry.selection.draw if entry.selection else None
    return Table(
        id="draws",
        caption="Tuning draws",
        columns=[
            Column("draw", "Draw", "count", "in the order of drawing"),
            Column("point", "Hyperparameters", "point"),
            Column("acc", "Acc", "mean_std", "in %"),
            Column("avg_acc", "AvgAcc", "mean_std", "in %"),
            Column("score", "Score", "percent", "harmonic mean of Acc and AvgAcc, in %"),
            Column("status", "Status", "status"),
        ],
        rows=[
            {
                "draw": d.draw + 1,
                "point": d.hyperparameters,
                "acc": d.result.acc,
                "avg_acc": d.result.avg_acc,
                "score": d.result.score,
                "status": d.result.status,
            }
            for d in entry.draws
        ],
        note=(
            "The draw with the highest score is selected, the earlier one on a tie; one with a failed seed is not "
            "eligible. A draw that repeats an earlier one's values is not listed again."
        ),
        marked=frozenset(i for i, d in enumerate(entry.draws) if d.draw == selected),
    )


def seeds(result: SetSummary) -> Table:
    """One row per seed of an evaluation set."""
    rows = []
    for trial in result.seeds:
        row: dict[str, Any] = {"seed": trial.key.seed_index + 1, "status": trial.status, "attempts": trial.attempts}
        counts = counts_of(trial.tasks) if trial.status is Status.OK else None
        if counts is not None:
            row |= {
                "acc": final_acc(counts),
                "avg_acc": avg_acc(counts),
                "afm": float(afm(counts)[-1]),
                "ala": float(ala(counts)[-1]),
                "agreement": trial.tasks[-1].agreement,
            }
        row |= {"tasks": len(trial.tasks), "scenario_seed": str(trial.scenario_seed)}
        rows.append(row)
    return Table(
        id=f"seeds-{file_name(result.data_set)}",
        caption=f"Seeds on {result.data_set}",
        columns=[
            Column("seed", "Seed", "count"),
            Column("acc", "Acc", "percent", "accuracy after the last task, in %"),
            Column("avg_acc", "AvgAcc", "percent", "mean over tasks of Acc, in %"),
            Column("afm", "Forgetting", "points", "AFM: mean loss on old tasks since they were learned (CLDyB eq. 1)"),
            Column("ala", "Learning", "percent", "ALA: mean accuracy on each task right after it was learned"),
            Column("agreement", "Agreement", "percent", "items predicted alike in other company, in %"),
            Column("tasks", "Tasks", "count", "tasks learned"),
            Column("attempts", "Attempts", "count", "tries; more than one where the machine failed"),
            Column("status", "Status", "status"),
            Column("scenario_seed", "Scenario seed", "code", "fixes class order and splits"),
        ],
        rows=rows,
    )


def tasks(result: SetSummary) -> Table:
    """One row per task of an evaluation set: means over the seeds that ended well."""
    return Table(
        id=f"tasks-{file_name(result.data_set)}",
        caption=f"Task by task on {result.data_set}",
        columns=[
            Column("task", "Task", "count"),
            Column("acc", "Acc", "mean_std", "accuracy on all classes so far, in %"),
            Column("stored", "stored", "count", "as declared", "Parameters"),
            Column("trainable", "trainable", "count", "as declared", "Parameters"),
            Column("state", "state", "bytes", "measured", "Memory"),
            Column("exemplars", "images", "count", "as declared", "Memory"),
            Column("peak", "peak", "bytes", "sampled", "Memory"),
            Column("peak_gpu", "GPU peak", "bytes", "sampled", "Memory"),
            Column("train", "training", "seconds", "", "Time"),
            Column("post", "post-training", "seconds", "", "Time"),
            Column("predict", "prediction", "seconds", "", "Time"),
            Column("cpu", "CPU", "seconds", "CPU time of the learning container", "Time"),
            Column("energy", "Energy (J)", "number", "of the GPU"),
        ],
        rows=[
            {
                "task": t.task + 1,
                "acc": t.acc,
                "stored": t.stored_parameters,
                "trainable": t.trainable_parameters,
                "state": t.state_bytes,
                "exemplars": t.exemplars,
                "peak": t.peak_memory_bytes,
                "peak_gpu": t.peak_gpu_bytes,
                "train": t.train_seconds,
                "post": t.post_seconds,
                "predict": t.predict_seconds,
                "cpu": t.cpu_seconds,
                "energy": t.energy_joules,
            }
            for t in result.tasks
        ],
        note="Means over the seeds that ended well; peaks are the highest of any seed.",
    )


@dataclass(frozen=True)
class HeatCell:
    """Seed-mean accuracy on one task after learning another; `level` from 0 (none right) to 10 (all right)."""

    mean: float
    level: int


@dataclass(frozen=True)
class HeatMap:
    """Accuracy matrix of a set: row t is taken after learning task t, column t' is the task tested."""

    data_set: str
    rows: list[list[HeatCell]]
    seeds: int


def heat_map(result: SetSummary) -> HeatMap | None:
    """The accuracy matrix, averaged over the seeds that ended well; None if there is none."""
    matrices = [task_accuracy(c) for c in result.counts]
    if not matrices or len({m.shape for m in matrices}) != 1:
        return None
    mean = np.mean(matrices, axis=0)
    rows = [[_heat_cell(float(mean[t, s])) for s in range(t + 1)] for t in range(len(mean))]
    return HeatMap(result.data_set, rows, len(matrices))


def _heat_cell(mean: float) -> HeatCell:
    return HeatCell(mean, min(10, int(mean * 10 + 0.5)))


@dataclass(frozen=True)
class FailedTrial:
    """A trial whose failure the learner is answerable for, with its own words."""

    title: str
    status: Status
    message: str
    log_tail: str


def failures(entry: EntrySummary, most: int = 20) -> list[FailedTrial]:
    """The failed trials of both phases, evaluation first, at most `most`."""
    evaluation = [t for result in entry.evaluation for t in result.failed]
    tuning = [t for draw in entry.draws for t in draw.result.failed]
    return [FailedTrial(_title(t), t.status, t.message, t.log_tail) for t in [*evaluation, *tuning][:most]]


def _title(trial: TrialRecord) -> str:
    draw = "" if trial.draw is None else f", draw {trial.draw + 1}"
    return f"{trial.key.phase.capitalize()} on {clean(trial.key.data_set)}{draw}, seed {trial.key.seed_index + 1}"


def spread(result: SetSummary) -> tuple[float | None, float | None]:
    """Standard deviation of Acc over seeds, and mean over tasks of that of Acc_t: how unstable a learner is."""
    over_tasks = [t.acc.std for t in result.tasks if t.acc.std is not None]
    return result.acc.std if result.acc else None, summarise(over_tasks).mean if over_tasks else None
