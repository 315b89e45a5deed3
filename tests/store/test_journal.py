"""What is written to a journal comes back whole; what was not finished is as if it had never begun."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from suite.errors import StoreError
from suite.status import Status
from suite.store import Journal, run_directories
from tests.store.factory import START, attempt, draw_points, info, lock, trial_record, write_run


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "runs" / lock().id)
    made.begin(info(lock()))
    return made


def test_a_run_is_recorded_once_and_continued_with_equal_inputs(journal: Journal) -> None:
    later = info(lock(), argv=["suite", "submit", "again"])
    assert journal.begin(later) == info(lock())
    assert journal.run() == info(lock())


def test_a_run_with_other_inputs_is_refused(journal: Journal) -> None:
    with pytest.raises(StoreError, match="other inputs"):
        journal.begin(info(lock(fingerprint="0" * 64)))


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    written = write_run(tmp_path, failed={("tools", 1): Status.OUT_OF_MEMORY})
    read = Journal(written.directory)
    failed = [t for t in read.trials() if t.status is Status.OUT_OF_MEMORY]
    assert len(read.trials()) == 3 * 2 + 2 * 2
    assert [t.key.data_set for t in failed] == ["tools"]
    selection, entry = read.selection(), read.entry()
    assert selection is not None
    assert selection.draw == 0
    assert entry is not None
    assert entry.data_sets == {"toys-2": Status.OK, "tools": Status.OUT_OF_MEMORY}


def test_nothing_recorded_reads_as_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "absent")
    assert (journal.run(), journal.selection(), journal.entry(), journal.trials()) == (None, None, None, [])
    assert run_directories(tmp_path) == []


def test_unfinished_files_are_passed_over_and_cleared_by_the_next_holder(tmp_path: Path) -> None:
    journal = write_run(tmp_path)
    trials = journal.trials()
    torn = journal.directory / "trials" / trials[0].id / ".tmp-trial.json-123"
    torn.write_text('{"key": {"finger')
    half_state = torn.with_name(".tmp-scratch") / "state"
    half_state.mkdir(parents=True)
    (half_state / "state.json").write_text("{")
    assert journal.trials() == trials
    with journal.lock():
        assert not torn.exists()
        assert not half_state.exists()


@pytest.mark.parametrize("text", ["", "{", '{"draw": 1}', "null", "\x00\xff", '{"draw": "\\ud800"}'])
def test_a_damaged_file_is_named_together_with_the_remedy(tmp_path: Path, text: str) -> None:
    journal = write_run(tmp_path)
    path = journal.directory / "selection.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(StoreError, match="damaged") as caught:
        journal.selection()
    assert str(path) in caught.value.message
    assert "Delete that file" in caught.value.remedy


def test_the_run_key_is_secret_and_stays(journal: Journal) -> None:
    key = journal.run_key()
    assert len(key) == 32
    assert Journal(journal.directory).run_key() == key
    assert stat.S_IMODE((journal.directory / "key").stat().st_mode) == 0o600
    (journal.directory / "key").write_bytes(b"short")
    with pytest.raises(StoreError, match="key is damaged"):
        journal.run_key()


def test_two_runs_have_different_keys(tmp_path: Path) -> None:
    assert Journal(tmp_path / "a").run_key() != Journal(tmp_path / "b").run_key()


def test_every_attempt_is_kept(journal: Journal) -> None:
    trial = trial_record(lock(), "tuning", "toys-1", draw_points(1)[0], 0).id
    first, second = attempt(trial, 1), attempt(trial, 2, Status.INTERRUPTED)
    journal.add_attempt(first)
    journal.add_attempt(second)
    assert journal.attempts(trial) == [first, second]
    assert journal.trial(trial) is None
    with pytest.raises(StoreError, match="exists already"):
        journal.add_attempt(second)


def test_a_trial_ends_once(journal: Journal) -> None:
    record = trial_record(lock(), "tuning", "toys-1", draw_points(1)[0], 0)
    journal.end_trial(record)
    journal.end_trial(record)
    with pytest.raises(StoreError, match="has ended already"):
        journal.end_trial(record.model_copy(update={"status": Status.CRASHED}))
    assert journal.trial(record.id) == record


def test_an_unwritable_folder_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match="cannot be written"):
        Journal(tmp_path / "runs" / "x").begin(info(lock()))


def test_a_name_that_is_no_trial_id_reaches_no_file(journal: Journal) -> None:
    with pytest.raises(ValueError, match="not the id"):
        journal.trial("../../etc")


def test_runs_of_a_results_folder_are_those_that_began(tmp_path: Path) -> None:
    one, two = write_run(tmp_path, "one"), write_run(tmp_path, "two", started=START)
    (tmp_path / "runs" / "stray").mkdir()
    assert run_directories(tmp_path) == sorted([one.directory, two.directory])
