"""The tables of a track's page: ranking, the two phases side by side, cost, runs that do not count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from suite.metrics import Summary
from suite.site.figures import MINUS, TIMES
from suite.site.table import Badge, Column, Entry, Table
from suite.status import Status
from suite.store import Board, EntrySummary, SetSummary, Standing, difference

Link: TypeAlias = Callable[[EntrySummary], Entry]
"""Gives the cell that names a run."""


def ranking(board: Board, link: Link) -> Table:
    """Who leads: places, scores, Acc and AvgAcc per evaluation set."""
    columns = [
        Column("rank", "Place", "place", "by Score; without a number: not ranked"),
        Column("submission", "Submission", "entry"),
        Column("score", "Score", "percent", "mean over evaluation sets of the harmonic mean of Acc and AvgAcc, in %"),
    ]
    for part in board.track.evaluation:
        name, group = part.data_set, _group(board, part.data_set)
        columns += [
            Column(f"{name}:acc", "Acc", "mean_std", "accuracy after the last task, in %", group),
            Column(f"{name}:avg_acc", "AvgAcc", "mean_std", "mean over tasks of Acc, in %", group),
        ]
    columns.append(Column("status", "Status", "status"))
    rows = []
    for standing in board.standings:
        entry = standing.summary
        row: dict[str, Any] = {
            "rank": standing.rank,
            "submission": link(entry),
            "score": entry.score,
            "status": entry.status,
        }
        for result in entry.evaluation:
            row[f"{result.data_set}:acc"] = _or_status(result.acc, entry, result)
            row[f"{result.data_set}:avg_acc"] = _or_status(result.avg_acc, entry, result)
        rows.append(row)
    return Table(
        id="ranking",
        caption="Ranking",
        columns=columns,
        rows=rows,
        note="Mean ± standard deviation over seeds, in %. A set with a failed seed has no mean and reads failed.",
        marked=frozenset(i for i, s in enumerate(board.standings) if s.rank == 1),
    )


def phases(board: Board, link: Link) -> Table:
    """What changes when hyperparameters meet data they were not tuned on."""
    tuned = f"Tuning on {board.track.tuning.data_set}"
    columns = [
        Column("submission", "Submission", "entry"),
        Column("tuning_acc", "Acc", "mean_std", "accuracy of the selected draw after the last task, in %", tuned),
        Column("tuning_margin", "over Replay", "points", "its Acc minus that of Replay", tuned),
        Column("tuning_rank", "Place", "place", "by the score that tuning selects by", tuned),
    ]
    for part in board.track.evaluation:
        name, group = part.data_set, _group(board, part.data_set)
        columns += [
            Column(f"{name}:difference", f"Tuning {MINUS} evaluation", "points", "difference of the two Acc", group),
            Column(f"{name}:margin", "over Replay", "points", "its Acc minus that of Replay", group),
            Column(f"{name}:rank", "Place", "place", "by the harmonic mean of Acc and AvgAcc", group),
        ]
    columns.append(Column("rank_change", "Places won", "change", "from tuning to evaluation; ▼ : fell"))
    return Table(
        id="phases",
        caption="Tuning against evaluation",
        columns=columns,
        rows=[_phases_row(s, link) for s in board.standings],
        note=(
            "Percentage points. Data sets differ in difficulty, so a difference alone is not overestimation: compare "
            "it between methods, with the margin over Replay in each phase, and with the change of place."
        ),
    )


def _phases_row(standing: Standing, link: Link) -> dict[str, Any]:
    entry = standing.summary
    tuned = entry.tuning.acc if entry.tuning else None
    row: dict[str, Any] = {
        "submission": link(entry),
        "tuning_acc": _tuning_cell(entry),
        "tuning_margin": standing.margin.tuning,
        "tuning_rank": standing.tuning_rank,
        "rank_change": standing.rank_change,
    }
    for result in entry.evaluation:
        row[f"{result.data_set}:difference"] = difference(tuned, result.acc)
        row[f"{result.data_set}:margin"] = standing.margin.evaluation.get(result.data_set)
        row[f"{result.data_set}:rank"] = standing.set_ranks.get(result.data_set)
    return row


def _tuning_cell(entry: EntrySummary) -> Summary | Status | None:
    if entry.selection and entry.selection.failure:
        return entry.selection.failure
    return entry.tuning.acc if entry.tuning else None


def cost(board: Board, link: Link) -> Table:
    """What the accuracy took: parameters, memory, time; means over evaluation sets of seed means."""
    parameters, memory, time = "Parameters after the last task", "Memory", "Time per trial"
    columns = [
        Column("submission", "Submission", "entry"),
        Column("stored", "stored", "count", "as declared by the learner", parameters),
        Column("trainable", "trainable", "count", "as declared by the learner", parameters),
        Column("state", "state", "bytes", "size of what crosses from task to task, measured", memory),
        Column("exemplars", "images", "count", "stored images, as declared", memory),
        Column("memory_b4", "CLDyB B.4", "bytes", f"4 bytes a parameter, 224 {TIMES} 224 {TIMES} 3 an image", memory),
        Column("peak", "peak", "bytes", "sampled peak memory of the learning container", memory),
        Column("train", "training", "seconds", "until the learner's mark, all tasks", time),
        Column("post", "post-training", "seconds", "after it", time),
        Column("predict", "prediction", "seconds", "all items after every task", time),
        Column("time_rank", "Place", "place", "by training and post-training time", time),
    ]
    return Table(
        id="cost",
        caption="Parameters, memory and time",
        columns=columns,
        rows=[_cost_row(s, link) for s in board.standings],
        note=(
            "Measured by the harness, in the evaluation phase. Times are ranked only where nothing else of the suite "
            "used the machine and all were taken on the same hardware."
        ),
    )


def _cost_row(standing: Standing, link: Link) -> dict[str, Any]:
    entry = standing.summary
    sets = [result for result in entry.evaluation if result.tasks]
    last = [result.tasks[-1] for result in sets]

    def mean(values: Sequence[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        return sum(known) / len(known) if known and len(known) == len(values) else None

    return {
        "submission": link(entry),
        "stored": mean([t.stored_parameters for t in last]),
        "trainable": mean([t.trainable_parameters for t in last]),
        "state": mean([t.state_bytes for t in last]),
        "exemplars": mean([t.exemplars for t in last]),
        "memory_b4": mean([t.memory_b4_bytes for t in last]),
        "peak": max((t.peak_memory_bytes or 0 for r in sets for t in r.tasks), default=0) or None,
        "train": mean([sum(t.train_seconds for t in r.tasks) for r in sets]),
        "post": mean([sum(t.post_seconds for t in r.tasks) for r in sets]),
        "predict": mean([sum(t.predict_seconds for t in r.tasks) for r in sets]),
        "time_rank": standing.time_rank,
    }


def other_runs(entries: Sequence[EntrySummary], link: Link, caption: str, table_id: str) -> Table:
    """Runs that are kept for the record but do not count."""
    return Table(
        id=table_id,
        caption=caption,
        columns=[
            Column("submission", "Submission", "entry"),
            Column("image", "Image", "code"),
            Column("suite_version", "Suite"),
            Column("started_at", "Began"),
            Column("score", "Score", "percent", "in %"),
            Column("status", "Status", "status"),
        ],
        rows=[
            {
                "submission": link(e),
                "image": e.info.lock.image,
                "suite_version": e.info.lock.suite_version,
                "started_at": e.info.started_at.date().isoformat(),
                "score": e.score,
                "status": e.status,
            }
            for e in entries
        ],
    )


def reason_badges(entry: EntrySummary) -> tuple[Badge, ...]:
    """Marks of an entry without a place; the reasons are in the title and on its page."""
    if not entry.unranked_because:
        return ()
    return (Badge("not ranked", "grey", "; ".join(entry.unranked_because)),)


def _or_status(summary: Summary | None, entry: EntrySummary, result: SetSummary) -> Summary | Status:
    if summary is not None:
        return summary
    return entry.status if entry.selection and entry.selection.failure else result.status


def _group(board: Board, data_set: str) -> str:
    similarity = board.track.similarity(data_set)
    return f"{data_set} ({similarity} similarity)" if similarity else data_set
