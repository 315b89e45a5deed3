"""One process per run, one writer per database; a lock dies with its holder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from suite.errors import StoreError
from suite.store import Journal, dead_runs
from suite.store.locks import file_lock, is_locked

_HOLDER = """
import sys, time
from pathlib import Path
from suite.store.locks import file_lock
with file_lock(Path(sys.argv[1]), 5):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def held_by_another_process(path: Path) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", _HOLDER, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder.pid
        finally:
            os.kill(holder.pid, signal.SIGKILL)


def test_two_processes_do_not_share_a_run(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs" / "r1")
    with held_by_another_process(journal.directory / "lock") as pid:
        with pytest.raises(StoreError, match=f"locked by process {pid} on "), journal.lock():
            pass
        assert journal.is_locked
        assert dead_runs(tmp_path) == set()
    with journal.lock():
        assert dead_runs(tmp_path) == set()
    assert dead_runs(tmp_path) == {"r1"}


def test_a_run_without_a_lock_file_is_dead(tmp_path: Path) -> None:
    (tmp_path / "runs" / "old").mkdir(parents=True)
    assert dead_runs(tmp_path) == {"old"}
    assert dead_runs(tmp_path / "absent") == set()


def test_readers_share_and_writers_do_not(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with file_lock(path, 0, shared=True), file_lock(path, 0, shared=True):
        with pytest.raises(StoreError, match="locked"), file_lock(path, 0):
            pass
        assert not is_locked(path)
    with file_lock(path, 0):
        with pytest.raises(StoreError, match=f"process {os.getpid()}"), file_lock(path, 0, shared=True):
            pass
        assert is_locked(path)


def test_a_waiting_process_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with held_by_another_process(path) as pid:
        os.kill(pid, signal.SIGKILL)
        with file_lock(path, 5):
            assert path.read_text().startswith(f"{os.getpid()} on ")


def test_a_lock_where_nothing_can_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"), file_lock(tmp_path / "file" / "lock", 0):
        pass
