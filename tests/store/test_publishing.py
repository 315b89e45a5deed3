"""A published run shows all that was measured, and nothing that must stay."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from suite.errors import StoreError
from suite.store import Journal, Results, merge, publish
from tests.store.factory import attempt, info, lock, stage_state, task_record, write_run


def test_what_was_measured_goes_along_and_secrets_stay(tmp_path: Path) -> None:
    journal = write_run(tmp_path / "private")
    trial = journal.trial_ids()[0]
    journal.run_key()
    journal.add_attempt(attempt(trial))
    state, digest = stage_state(journal, trial, b"a state")
    journal.commit_task(trial, task_record(0, 0.5, random.Random(0), state_hash=digest), state)
    with journal.lock():
        folder = publish(journal, tmp_path / "public")
    names = {f.name for f in folder.rglob("*") if f.is_file()}
    assert names == {"run.json", "selection.json", "entry.json", "trial.json", "attempt-001.json"}
    for name in ("private", "public"):
        merge(tmp_path / name)
    private, public = (Results(tmp_path / name).run(journal.directory.name) for name in ("private", "public"))
    assert public == private


def test_publishing_twice_is_publishing_once(tmp_path: Path) -> None:
    journal = write_run(tmp_path / "private")
    publish(journal, tmp_path / "public")
    folder = publish(journal, tmp_path / "public")
    assert Journal(folder).trials() == journal.trials()


def test_an_unfinished_run_is_not_published(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs" / lock().id)
    journal.begin(info(lock()))
    with pytest.raises(StoreError, match="no entry yet"):
        publish(journal, tmp_path / "public")
    assert not (tmp_path / "public").exists()
