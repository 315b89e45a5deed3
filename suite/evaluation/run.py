"""A submission on a track: tuning, selection, evaluation (GTEP, algorithms 1 and 2), from a journal that survives."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from suite.errors import InfrastructureError, Interrupted, StoreError
from suite.evaluation.bench import Bench
from suite.evaluation.entry import entry_of
from suite.evaluation.events import MergeDelayed, PhaseStarted, Report, Retried, Selected, TrialDone
from suite.evaluation.plan import TrialSpec, draw_points, evaluation_trials, tuning_trials
from suite.evaluation.selection import select
from suite.evaluation.trial import run_trial
from suite.execution import Slot, run_jobs
from suite.protocol import Point
from suite.seeds import canonical_json
from suite.status import Status
from suite.store.journal import Journal
from suite.store.records import Attempt, Entry, Phase, RunLock, Selection, TrialRecord
from suite.tracks import Track

MAX_ATTEMPTS = 3
"""Tries at a trial when the machine fails; after that the run stops and can be continued."""


@dataclass(frozen=True)
class Run:
    """A submission on a track, ready to be worked on."""

    track: Track
    lock: RunLock
    journal: Journal
    slots: Sequence[Slot]
    bench: Callable[[Slot], Bench]
    report: Report
    merge: Callable[[], None]
    """Brings the journal into the database; called after every trial and at the end."""
    retry_seconds: float
    """Before a trial is tried again."""


def run_submission(run: Run) -> Entry:
    """Work through both phases; returns the entry, complete or failed.

    Raises Interrupted when the user stops, InfrastructureError when the machine fails for good: in both cases the same
    command continues.
    """
    selection = run.journal.selection() or _select(run)
    if selection.hyperparameters is not None:
        specs = evaluation_trials(run.track, run.lock.fingerprint, selection.hyperparameters)
        _run_phase(run, "evaluation", specs)
    entry = entry_of(run.track, run.lock, selection, run.journal.trials())
    run.journal.set_entry(entry)
    run.merge()
    return entry


def _select(run: Run) -> Selection:
    """The outcome of tuning; with `--hyperparameters` there is nothing to tune."""
    if run.lock.hyperparameters is not None:
        selection = Selection(
            draw=None, hyperparameters=run.lock.hyperparameters, score=None, eligible_draws=0, draws=0
        )
    else:
        points = draw_points(run.track, run.lock.manifest.space)
        specs = tuning_trials(run.track, run.lock.fingerprint, points)
        selection = select(points, _by_draw(points, specs, _run_phase(run, "tuning", specs)), run.track.seeds)
    run.journal.set_selection(selection)
    run.report(Selected(selection))
    return selection


def _by_draw(
    points: Sequence[Point], specs: Sequence[TrialSpec], records: dict[str, TrialRecord]
) -> dict[int, list[TrialRecord]]:
    """Each draw's records; draws that share a point share them."""
    return {r: [records[s.key.id] for s in specs if s.draw == r] for r in range(len(points))}


def _run_phase(run: Run, phase: Phase, specs: Sequence[TrialSpec]) -> dict[str, TrialRecord]:
    """The records of `specs` by trial id; what the journal holds is not run again."""
    unique = {spec.key.id: spec for spec in reversed(specs)}
    records = {i: record for i in unique if (record := run.journal.trial(i)) is not None}
    todo = [spec for i, spec in reversed(unique.items()) if i not in records]
    run.report(PhaseStarted(phase, len(unique), len(records)))
    for spec, record in run_jobs(todo, run.slots, lambda spec, slot: _attempt(run, spec, slot)):
        run.journal.end_trial(record)
        if not run.journal.keep_states:
            run.journal.drop_states(record.id)
        records[spec.key.id] = record
        run.report(TrialDone(record))
        _merge_if_free(run)
    return records


def _merge_if_free(run: Run) -> None:
    """Bring the database up to date between trials; when it is locked, that waits for the next time or the end."""
    try:
        run.merge()
    except StoreError as error:
        run.report(MergeDelayed(error.message))


def _attempt(run: Run, spec: TrialSpec, slot: Slot) -> TrialRecord:
    """Run a trial, again when the machine failed; every try is kept."""
    while True:
        number = len(run.journal.attempts(spec.key.id)) + 1
        try:
            record = run_trial(run.bench(slot), spec)
        except Interrupted as stop:
            run.journal.add_attempt(_lost(spec, number, Status.INTERRUPTED, stop.message))
            raise
        except InfrastructureError as failure:
            attempt = _lost(spec, number, Status.INFRASTRUCTURE, failure.message)
            run.journal.add_attempt(attempt)
            run.report(Retried(spec, attempt))
            if _failed_in_a_row(run.journal.attempts(spec.key.id)) % MAX_ATTEMPTS == 0:
                raise
            time.sleep(run.retry_seconds)
        else:
            return record.model_copy(update={"attempts": number})


def _failed_in_a_row(attempts: Sequence[Attempt]) -> int:
    count = 0
    for attempt in reversed(attempts):
        if attempt.status is not Status.INFRASTRUCTURE:
            break
        count += 1
    return count


def _lost(spec: TrialSpec, number: int, status: Status, message: str) -> Attempt:
    return Attempt(trial=spec.key.id, number=number, status=status, message=message, ended_at=datetime.now(UTC))


def changed_inputs(now: RunLock, before: RunLock) -> list[str]:
    """Names of the inputs in which two runs differ, for saying why a new run begins."""
    a, b = now.model_dump(mode="json"), before.model_dump(mode="json")
    return [name for name in a if canonical_json(a[name]) != canonical_json(b[name])]
