"""States cross from task to task through the journal: whole, hashed, only the newest, never a wrong one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from suite.store import Journal, TaskRecord
from tests.store.factory import draw_points, info, lock, stage_state, task_record, trial_record

TRIAL = trial_record(lock(), "tuning", "toys-1", draw_points(1)[0], 0).id


def content(task: int) -> bytes:
    return b"state after task %d" % task


def commit(journal: Journal, task: int) -> Path:
    state, digest = stage_state(journal, TRIAL, content(task))
    return journal.commit_task(TRIAL, task_record(task, 0.8, random.Random(task), state_hash=digest), state)


def resumed(journal: Journal) -> int:
    """Tasks that need not be learned again, having checked that the state is the one after the last of them."""
    tasks, state = journal.resume(TRIAL)
    assert [t.task for t in tasks] == list(range(len(tasks)))
    assert (state is None) == (not tasks)
    if state is not None:
        assert (state / "state.json").read_bytes() == content(len(tasks) - 1)
    return len(tasks)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "run")
    made.begin(info(lock()))
    return made


def states(journal: Journal) -> list[str]:
    folder = journal.directory / "trials" / TRIAL / "state"
    return sorted(d.name for d in folder.iterdir())


def test_a_trial_that_has_not_begun_starts_from_nothing(journal: Journal) -> None:
    assert journal.resume(TRIAL) == ([], None)


def test_only_the_newest_state_lives(journal: Journal) -> None:
    for task in range(3):
        home = commit(journal, task)
        assert (home / "state.json").read_bytes() == content(task)
        assert states(journal) == [f"{task:03d}"]
    assert resumed(journal) == 3


def test_every_state_lives_when_asked_for(journal: Journal) -> None:
    keeping = Journal(journal.directory, keep_states=True)
    for task in range(3):
        commit(keeping, task)
    assert states(journal) == ["000", "001", "002"]
    keeping.drop_states(TRIAL)
    assert resumed(journal) == 0


def test_the_scratch_folder_is_empty_each_time_and_gone_after_the_commit(journal: Journal) -> None:
    stage_state(journal, TRIAL, b"thrown away")
    assert list(journal.scratch(TRIAL).iterdir()) == []
    commit(journal, 0)
    assert sorted(f.name for f in (journal.directory / "trials" / TRIAL).iterdir()) == ["state", "task-000.json"]


@pytest.mark.parametrize("damage", ["missing", "changed", "longer", "another file"])
def test_a_damaged_state_is_never_used(journal: Journal, damage: str) -> None:
    keeping = Journal(journal.directory, keep_states=True)
    for task in range(3):
        commit(keeping, task)
    newest = journal.state(TRIAL, 2)
    assert newest is not None
    if damage == "missing":
        shutil.rmtree(newest)
    elif damage == "changed":
        (newest / "state.json").write_bytes(content(1))
    elif damage == "longer":
        (newest / "state.json").write_bytes(content(2) + b"\0")
    else:
        (newest / "more.safetensors").write_bytes(b"")
    assert resumed(keeping) == 2


def test_with_the_only_state_gone_the_trial_starts_over_and_forgets_what_followed(journal: Journal) -> None:
    for task in range(3):
        commit(journal, task)
    (journal.directory / "trials" / TRIAL / "state" / "002" / "state.json").write_bytes(b"damaged")
    assert resumed(journal) == 0
    commit(journal, 0)
    assert resumed(journal) == 1
    assert [t.task for t in journal.tasks(TRIAL)] == [0]


class Crash(BaseException):
    """The machine stops here."""


@pytest.mark.parametrize("keep_states", [False, True])
def test_a_crash_at_any_step_of_a_commit_leaves_the_task_done_or_not_begun(
    tmp_path: Path, keep_states: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = []
    for step in range(200):
        journal = Journal(tmp_path / str(step), keep_states=keep_states)
        commit(journal, 0)
        with monkeypatch.context() as patched:
            _crash_at(patched, step)
            try:
                commit(journal, 1)
                finished = True
            except Crash:
                finished = False
        with journal.lock():
            outcomes.append(resumed(journal))
            assert outcomes[-1] in ((2,) if finished else (1, 2))
            commit(journal, 1)
            commit(journal, 2)
            assert resumed(journal) == 3
        if finished:
            break
    assert outcomes == sorted(outcomes)
    assert len(outcomes) > 8


def _crash_at(patched: pytest.MonkeyPatch, step: int) -> None:
    """Raise at call number `step` of those that change the disk."""
    calls = iter(range(10**6))

    def fragile(real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if next(calls) == step:
                raise Crash
            return real(*args, **kwargs)

        return call

    for owner, name in [(os, "fsync"), (Path, "rename"), (Path, "replace"), (shutil, "rmtree"), (Path, "unlink")]:
        patched.setattr(owner, name, fragile(getattr(owner, name)))


_WORKER = """
import sys, itertools
from pathlib import Path
from suite.store import Journal
from tests.store import test_journal_states as module
journal = Journal(Path(sys.argv[1]))
with journal.lock():
    done = module.resumed(journal)
    for task in range(done, 1000):
        module.commit(journal, task)
        print(task, flush=True)
"""


def test_a_process_killed_at_any_moment_is_continued(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run")
    rng = random.Random(0)
    reached = 0
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(journal.directory)], stdout=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdout is not None
            seen = [int(worker.stdout.readline()) for _ in range(3)]
            time.sleep(rng.uniform(0, 0.05))
            os.kill(worker.pid, signal.SIGKILL)
            seen += [int(line) for line in worker.stdout.read().split("\n")[:-1]]
        assert seen[0] == reached
        with journal.lock():
            reached = resumed(journal)
        assert reached >= seen[-1] + 1  # what was acknowledged is never lost


def test_a_record_is_not_taken_for_a_task_that_was_skipped(journal: Journal) -> None:
    for task in range(3):
        commit(journal, task)
    (journal.directory / "trials" / TRIAL / "task-001.json").unlink()
    records: list[TaskRecord] = journal.tasks(TRIAL)
    assert [t.task for t in records] == [0]
    assert resumed(journal) == 0
