"""Records as rows of the database, and back: nothing is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel

from suite.metrics import (
    AccuracyCounts,
    acc,
    afm,
    ala,
    average_accuracy,
    average_retention,
    avg_acc,
    final_acc,
)
from suite.status import Status
from suite.store.records import (
    Attempt,
    Entry,
    Machine,
    Resources,
    RunInfo,
    RunLock,
    Selection,
    TaskRecord,
    TrialKey,
    TrialRecord,
)

Row: TypeAlias = dict[str, Any]
"""Values by column name."""

R = TypeVar("R", bound=BaseModel)


def run_row(run: str, info: RunInfo) -> Row:
    """Row of `runs`."""
    lock = info.lock
    return {
        "run": run,
        **lock.model_dump(exclude={"manifest", "data_hashes", "hyperparameters"}),
        "manifest": lock.manifest.model_dump_json(),  # in its own order: conditions of a space look back
        "data_hashes": _json(lock.data_hashes),
        "hyperparameters": _json(lock.hyperparameters),
        **info.machine.model_dump(),
        "versions": _json(info.versions),
        "argv": info.argv,
        "source_commit": info.source_commit,
        "is_dirty": info.is_dirty,
        "started_at": _utc(info.started_at),
    }


def run_record(row: Row) -> RunInfo:
    """The record behind a row of `runs`."""
    fields = _loaded(row, "manifest", "data_hashes", "hyperparameters", "versions")
    return RunInfo(
        lock=_part(RunLock, fields),
        machine=_part(Machine, fields),
        versions=fields["versions"],
        argv=fields["argv"],
        source_commit=fields["source_commit"],
        is_dirty=fields["is_dirty"],
        started_at=_aware(fields["started_at"]),
    )


def counts_of(tasks: Sequence[TaskRecord]) -> AccuracyCounts | None:
    """The accuracy counts of the tasks of a trial; None when it learned none."""
    return AccuracyCounts.from_rows([t.correct for t in tasks], [t.total for t in tasks]) if tasks else None


def trial_row(run: str, trial: TrialRecord, stamp: str) -> Row:
    """Row of `trials`."""
    return {
        "run": run,
        "trial": trial.id,
        **trial.key.model_dump(include={"phase", "data_set", "seed_index"}),
        "hyperparameters": _json(trial.key.hyperparameters),
        **trial.model_dump(include={"scenario_seed", "draw", "message", "log_tail", "is_exclusive", "attempts"}),
        "status": trial.status.value,
        **_final_scores(trial),
        "started_at": _utc(trial.started_at),
        "ended_at": _utc(trial.ended_at),
        "journal_stamp": stamp,
    }


def _final_scores(trial: TrialRecord) -> Row:
    counts = counts_of(trial.tasks)
    if counts is None or trial.status is not Status.OK:
        return dict.fromkeys(("acc", "avg_acc", "aa", "afm", "ar", "ala"))
    return {
        "acc": final_acc(counts),
        "avg_acc": avg_acc(counts),
        "aa": float(average_accuracy(counts)[-1]),
        "afm": float(afm(counts)[-1]),
        "ar": float(average_retention(counts)[-1]),
        "ala": float(ala(counts)[-1]),
    }


def task_rows(run: str, trial: TrialRecord) -> list[Row]:
    """Rows of `tasks`."""
    counts = counts_of(trial.tasks)
    if counts is None:
        return []
    scores = {"acc": acc(counts), "aa": average_accuracy(counts), "afm": afm(counts), "ala": ala(counts)}
    return [
        {
            "run": run,
            "trial": trial.id,
            **record.model_dump(exclude={"resources", "correct", "total", "metrics"}),
            **record.resources.model_dump(),
            "metrics": _json(record.metrics),
            **{name: float(values[t]) for name, values in scores.items()},
        }
        for t, record in enumerate(trial.tasks)
    ]


def count_rows(run: str, trial: TrialRecord) -> list[Row]:
    """Rows of `task_counts`."""
    return [
        {"run": run, "trial": trial.id, "task": t.task, "tested": tested, "correct": correct, "total": total}
        for t in trial.tasks
        for tested, (correct, total) in enumerate(zip(t.correct, t.total, strict=True))
    ]


def trial_record(run: RunLock, row: Row, tasks: Sequence[Row], counts: Mapping[int, Sequence[Row]]) -> TrialRecord:
    """The record behind a row of `trials`; `tasks` and, per task, `counts` are its rows there, in order."""
    fields = _loaded(row, "hyperparameters")
    key = {"fingerprint": run.fingerprint, "track": run.track_hash, **fields}
    return _part(
        TrialRecord,
        {
            **fields,
            "key": _part(TrialKey, key),
            "tasks": [_task_record(task, counts[task["task"]]) for task in tasks],
            "started_at": _aware(fields["started_at"]),
            "ended_at": _aware(fields["ended_at"]),
        },
    )


def _task_record(row: Row, counts: Sequence[Row]) -> TaskRecord:
    fields = _loaded(row, "metrics")
    return _part(
        TaskRecord,
        {
            **fields,
            "correct": [c["correct"] for c in counts],
            "total": [c["total"] for c in counts],
            "resources": _part(Resources, fields),
        },
    )


def attempt_row(run: str, attempt: Attempt) -> Row:
    """Row of `attempts`."""
    return {"run": run, **attempt.model_dump(mode="json"), "ended_at": _utc(attempt.ended_at)}


def attempt_record(row: Row) -> Attempt:
    """The record behind a row of `attempts`."""
    return _part(Attempt, {**row, "ended_at": _aware(row["ended_at"])})


def selection_row(run: str, selection: Selection) -> Row:
    """Row of `selections`."""
    row = selection.model_dump(mode="json")
    return {"run": run, **row, "hyperparameters": _json(selection.hyperparameters)}


def selection_record(row: Row) -> Selection:
    """The record behind a row of `selections`."""
    return _part(Selection, _loaded(row, "hyperparameters"))


def entry_row(run: str, entry: Entry) -> Row:
    """Row of `entries`."""
    row = entry.model_dump(mode="json", exclude={"selection"})
    return {**row, "run": run, "data_sets": _json(row["data_sets"])}


def entry_record(row: Row, selection: Selection | None) -> Entry:
    """The record behind a row of `entries`."""
    return _part(Entry, {**_loaded(row, "data_sets"), "selection": selection})


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _loaded(row: Row, *names: str) -> Row:
    return {**row, **{name: None if row[name] is None else json.loads(row[name]) for name in names}}


def _part(model: type[R], fields: Mapping[str, Any]) -> R:
    return model.model_validate({name: fields[name] for name in model.model_fields if name in fields})


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)
