"""Runs made up for tests: a journal as an undisturbed submit would leave it, with figures drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from suite.metrics import AccuracyCounts, avg_acc, final_acc, selection_score
from suite.protocol import Choice, LogUniform, Manifest, Point, Space
from suite.seeds import canonical_json, content_hash, derive_seed
from suite.status import Status
from suite.store import (
    Attempt,
    Entry,
    Journal,
    Machine,
    Phase,
    Resources,
    RunInfo,
    RunLock,
    Selection,
    StoredRun,
    TaskRecord,
    TrialKey,
    TrialRecord,
    hash_state,
    run_directory,
)

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPACE = Space({"lr": LogUniform(low=0.001, high=0.1), "scheduler": Choice(["step", "cosine"])})
TRACK: dict[str, Any] = {
    "name": "toy-3",
    "title": "Toys, three tasks",
    "summary": "Made up for tests.",
    "group": "scratch",
    "is_reduced": True,
    "scenario": "2 + 2x2",
    "draws": 3,
    "seeds": 2,
    "tuning": {"data_set": "toys-1", "scenario": None},
    "evaluation": [
        {"data_set": "toys-2", "similarity": "high", "scenario": None},
        {"data_set": "tools", "similarity": "low", "scenario": None},
    ],
}
"""A track as its snapshot holds it (only what is shown)."""


def lock(submission: str = "mine", **changes: Any) -> RunLock:
    """The inputs of a run."""
    track = dict(changes.pop("track_data", TRACK))
    manifest = changes.pop("manifest", None) or Manifest(name=submission, space=SPACE, description="Made up for tests.")
    data_sets = [track["tuning"]["data_set"], *(e["data_set"] for e in track["evaluation"])]
    values: dict[str, Any] = {
        "submission": submission,
        "image": f"{submission}:1",
        "fingerprint": content_hash(submission),
        "manifest": manifest,
        "track": track["name"],
        "track_hash": content_hash(track),
        "track_snapshot": canonical_json(track),
        "data_hashes": {name: content_hash(name) for name in data_sets},
        "suite_version": "0.1.0",
        "protocol": "1.0",
        "isolation": "docker",
        "device": "cpu",
    }
    return RunLock(**(values | changes))


def info(run_lock: RunLock, started: datetime = START, **changes: Any) -> RunInfo:
    """What is recorded of a run."""
    values: dict[str, Any] = {
        "lock": run_lock,
        "machine": Machine(cpu="Toy CPU", cpus=2, memory_bytes=1 << 34, kernel="6.1", engine="Docker 27"),
        "versions": {"python": "3.11.7", "numpy": "2.4.6"},
        "argv": ["suite", "submit", run_lock.image, "--track", run_lock.track],
        "source_commit": "0" * 40,
        "started_at": started,
    }
    return RunInfo(**(values | changes))


def task_record(task: int, skill: float, rng: random.Random, items: int = 40, state_hash: str = "") -> TaskRecord:
    """A learned task: `skill` is the accuracy on a new task, each later one costs a tenth of it on the old ones."""
    correct = []
    for tested in range(task + 1):
        accuracy = skill - 0.1 * (task - tested) + rng.uniform(-0.05, 0.05)
        correct.append(round(items * min(1.0, max(0.0, accuracy))))
    return TaskRecord(
        task=task,
        classes=[f"class {2 * task}", f"class {2 * task + 1}"],
        correct=correct,
        total=[items] * (task + 1),
        resources=Resources(
            train_seconds=rng.uniform(1, 2),
            post_seconds=rng.uniform(0, 0.2),
            predict_seconds=rng.uniform(0.1, 0.3),
            setup_seconds=0.5,
            cpu_seconds=rng.uniform(1, 2),
            peak_memory_bytes=rng.randrange(1 << 27, 1 << 28),
        ),
        state_bytes=1000 * (task + 1),
        state_files=2,
        state_elements=250 * (task + 1),
        state_hash=state_hash or content_hash(["state", task]),
        stored_parameters=200 * (task + 1),
        trainable_parameters=100,
        exemplars=10 * (task + 1),
        memory_b4_bytes=800 * (task + 1),
        metrics={"loss": rng.random()},
    )


def trial_record(
    run_lock: RunLock,
    phase: Phase,
    data_set: str,
    point: Point,
    seed: int,
    *,
    draw: int | None = None,
    skill: float = 0.8,
    status: Status = Status.OK,
    tasks: int = 3,
    **changes: Any,
) -> TrialRecord:
    """A trial that ended; a failed one has learned its first task only."""
    key = TrialKey(
        fingerprint=run_lock.fingerprint,
        track=run_lock.track_hash,
        phase=phase,
        data_set=data_set,
        hyperparameters=point,
        seed_index=seed,
    )
    rng = random.Random(key.id)
    done = tasks if status is Status.OK else 1
    values: dict[str, Any] = {
        "key": key,
        "draw": draw,
        "status": status,
        "message": "" if status is Status.OK else f"The learner {status.look.text} in task 2.",
        "log_tail": "" if status is Status.OK else "Traceback: made up\n",
        "tasks": [task_record(t, skill, rng) for t in range(done)],
        "scenario_seed": derive_seed(run_lock.track_hash, phase, data_set, seed),
        "is_exclusive": True,
        "started_at": START + timedelta(minutes=seed),
        "ended_at": START + timedelta(minutes=seed, seconds=rng.uniform(3, 30)),
    }
    return TrialRecord(**(values | changes))


def draw_points(count: int) -> list[Point]:
    """Points of `SPACE`."""
    return [{"lr": 0.001 * (i + 1), "scheduler": "step" if i % 2 else "cosine"} for i in range(count)]


def counts(trial: TrialRecord) -> AccuracyCounts:
    """The accuracy counts of a trial that learned all its tasks."""
    return AccuracyCounts.from_rows([t.correct for t in trial.tasks], [t.total for t in trial.tasks])


def write_run(
    results: Path,
    submission: str = "mine",
    *,
    skill: float = 0.8,
    failed: Mapping[tuple[str, int], Status] | None = None,
    failed_draws: Sequence[int] = (),
    is_complete: bool = True,
    unranked_because: Sequence[str] = (),
    started: datetime = START,
    info_changes: Mapping[str, Any] | None = None,
    **lock_changes: Any,
) -> Journal:
    """Journal of a submission: all tuning draws, the selection, all evaluation seeds, the entry.

    `failed` maps (evaluation set, seed) to the status of a seed that failed.
    """
    run_lock = lock(submission, **lock_changes)
    track = lock_changes.get("track_data", TRACK)
    journal = Journal(run_directory(results, run_lock.id))
    journal.begin(info(run_lock, started, **(info_changes or {})))
    points = draw_points(track["draws"])
    scores: list[float | None] = []
    for draw, point in enumerate(points if run_lock.hyperparameters is None else []):
        status = Status.DIVERGED if draw in failed_draws else Status.OK
        trials = [
            trial_record(
                run_lock, "tuning", track["tuning"]["data_set"], point, seed, draw=draw, skill=skill - 0.05 * draw,
                status=status,
            )
            for seed in range(track["seeds"])
        ]  # fmt: skip
        for trial in trials:
            journal.end_trial(trial)
        made = [counts(trial) for trial in trials]
        ok = status is Status.OK
        scores.append(selection_score([final_acc(c) for c in made], [avg_acc(c) for c in made]) if ok else None)
    chosen = run_lock.hyperparameters
    if chosen is None:
        eligible = [d for d, score in enumerate(scores) if score is not None]
        best = max(eligible, key=lambda d: scores[d] or 0.0) if eligible else None
        chosen = None if best is None else points[best]
        journal.set_selection(
            Selection(
                draw=best,
                hyperparameters=chosen,
                score=None if best is None else scores[best],
                worst_draw=min(eligible, key=lambda d: scores[d] or 0.0) if eligible else None,
                eligible_draws=len(eligible),
                draws=len(scores),
                failure=None if eligible else Status.DIVERGED,
            )
        )
    data_sets: dict[str, Status] = {}
    if chosen is not None:
        data_sets = {part["data_set"]: Status.OK for part in track["evaluation"]}
        for number, part in enumerate(track["evaluation"]):
            for seed in range(track["seeds"]):
                status = (failed or {}).get((part["data_set"], seed), Status.OK)
                harder = skill - 0.1 * (number + 1)
                record = trial_record(
                    run_lock, "evaluation", part["data_set"], chosen, seed, skill=harder, status=status
                )
                journal.end_trial(record)
                if status is not Status.OK and data_sets[part["data_set"]] is Status.OK:
                    data_sets[part["data_set"]] = status
    journal.set_entry(
        Entry(
            run=run_lock.id,
            submission=submission,
            track=run_lock.track,
            is_complete=is_complete,
            is_ranked=is_complete and not unranked_because,
            unranked_because=list(unranked_because),
            selection=journal.selection(),
            data_sets=data_sets,
        )
    )
    return journal


def stored(journal: Journal) -> StoredRun:
    """What the database would give back for a journal."""
    run = journal.run()
    assert run is not None
    return StoredRun(
        id=run.lock.id,
        info=run,
        trials=journal.trials(),
        attempts=[a for trial in journal.trial_ids() for a in journal.attempts(trial)],
        selection=journal.selection(),
        entry=journal.entry(),
    )


def attempt(trial: str, number: int = 1, status: Status = Status.INFRASTRUCTURE) -> Attempt:
    """A try that the machine cut short."""
    return Attempt(trial=trial, number=number, status=status, message="The engine went away.", ended_at=START)


def stage_state(journal: Journal, trial: str, content: bytes) -> tuple[Path, str]:
    """A state in the trial's scratch folder, and its hash."""
    state = journal.scratch(trial) / "state"
    state.mkdir()
    (state / "state.json").write_bytes(content)
    return state, hash_state(state)
