"""The journal of one run: atomic files that a crash leaves whole or absent (DESIGN 4).

    runs/<run id>/
      lock                        held by the process that works on the run
      run.json                    RunInfo
      key                         32 secret bytes for permutation keys; never exported
      trials/<trial id>/
        task-000.json             TaskRecord, one per learned task
        state/000/                the state after that task; only the newest lives
        attempt-001.json          Attempt, one per try that did not end the trial
        trial.json                TrialRecord: the trial is over
      selection.json, entry.json  Selection, Entry

Names that start with `.tmp-` are not committed yet: readers pass over them, the next holder of the lock removes them.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from suite.errors import StoreError
from suite.store.files import TEMPORARY, hash_state, remove_tree, storing, sync_directory, sync_tree, write_atomically
from suite.store.locks import file_lock, is_locked
from suite.store.records import Attempt, Entry, RunInfo, Selection, TaskRecord, TrialRecord

RUNS = "runs"
_KEY_BYTES = 32
_LOCK_SECONDS = 1.0
_TRIAL_ID = re.compile(r"^[0-9a-f]{64}$")
_SCRATCH = f"{TEMPORARY}scratch"

R = TypeVar("R", bound=BaseModel)


class Journal:
    """All that one run has done. Methods raise StoreError when a file cannot be written, or is not what was written."""

    def __init__(self, directory: Path, *, keep_states: bool = False) -> None:
        """A journal that keeps the newest state of a trial only, or every one (`keep_states`)."""
        self.directory = directory
        self.keep_states = keep_states

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep the run for this process and clear away what a crash left. StoreError if another process has it."""
        with file_lock(self.directory / "lock", _LOCK_SECONDS, what=f"The run {self.directory.name}"):
            for leftover in list(self.directory.rglob(f"{TEMPORARY}*")):
                if leftover.is_dir():
                    remove_tree(leftover)
                else:
                    leftover.unlink(missing_ok=True)
            yield

    @property
    def is_locked(self) -> bool:
        """Whether a living process works on the run."""
        return is_locked(self.directory / "lock")

    # --- the run ------------------------------------------------------------------------------------------------------

    def begin(self, info: RunInfo) -> RunInfo:
        """Record the run, or return how it was recorded when it first began. StoreError if its inputs were others."""
        known = self.run()
        if known is None:
            self._write(self.directory / "run.json", info)
            return info
        if known.lock != info.lock:
            raise StoreError(
                f"{self.directory} belongs to a run with other inputs.", "Choose another folder with --results."
            )
        return known

    def run(self) -> RunInfo | None:
        """What `begin` recorded."""
        return self._read(self.directory / "run.json", RunInfo)

    def run_key(self) -> bytes:
        """The run's secret (32 bytes), drawn at the first call and the same ever after."""
        path = self.directory / "key"
        if not path.exists():
            write_atomically(path, secrets.token_bytes(_KEY_BYTES), mode=0o600)
        key = path.read_bytes()
        if len(key) != _KEY_BYTES:
            raise _damaged(
                path, f"{len(key)} bytes instead of {_KEY_BYTES}", "Delete the run's folder; it starts anew."
            )
        return key

    def set_selection(self, selection: Selection) -> None:
        """Record the outcome of tuning."""
        self._write(self.directory / "selection.json", selection)

    def selection(self) -> Selection | None:
        """The outcome of tuning, once there is one."""
        return self._read(self.directory / "selection.json", Selection)

    def set_entry(self, entry: Entry) -> None:
        """Record the leaderboard entry as it stands."""
        self._write(self.directory / "entry.json", entry)

    def entry(self) -> Entry | None:
        """The leaderboard entry as it stands."""
        return self._read(self.directory / "entry.json", Entry)

    # --- tasks and states ---------------------------------------------------------------------------------------------

    def scratch(self, trial: str) -> Path:
        """An empty folder on the journal's file system, for a state on its way in; made anew by every call."""
        folder = self._trial(trial) / _SCRATCH
        with storing(folder):
            remove_tree(folder)
            folder.mkdir(parents=True)
        return folder

    def commit_task(self, trial: str, record: TaskRecord, state: Path) -> Path:
        """Make a task done; returns where its state lies from now on.

        `state` is a flat folder in `scratch` that is taken over, `record.state_hash` its `hash_state`. The record is
        the commit: before it is on disk the task has not happened, after it the task is never learned again.
        """
        folder = self._trial(trial)
        states = folder / "state"
        home = states / f"{record.task:03d}"
        with storing(home):
            for later in self._task_files(folder):
                if _number(later) > record.task:  # what followed from a state that was found damaged
                    later.unlink()
            sync_tree(state)
            states.mkdir(exist_ok=True)
            remove_tree(home)
            state.rename(home)
            sync_directory(states)
            sync_directory(folder)
        self._write(folder / f"task-{record.task:03d}.json", record)
        with storing(home):
            for other in states.iterdir():
                if other.name > home.name or (other.name < home.name and not self.keep_states):
                    remove_tree(other)
            remove_tree(folder / _SCRATCH)
        return home

    def tasks(self, trial: str) -> list[TaskRecord]:
        """The tasks that the trial has learned, in order."""
        records = [self._read(file, TaskRecord) for file in self._task_files(self._trial(trial))]
        return [record for position, record in enumerate(r for r in records if r) if record.task == position]

    def resume(self, trial: str) -> tuple[list[TaskRecord], Path | None]:
        """Tasks that need not be learned again and the state after the last of them; ([], None) when there is none.

        A state that is missing or not what was recorded is passed over for an earlier one, never used.
        """
        tasks = self.tasks(trial)
        for count in range(len(tasks), 0, -1):
            state = self.state(trial, count - 1)
            if state is not None and _is_intact(state, tasks[count - 1]):
                return tasks[:count], state
        return [], None

    def state(self, trial: str, task: int) -> Path | None:
        """The folder of the state after `task`, if it still lives."""
        state = self._trial(trial) / "state" / f"{task:03d}"
        return state if state.is_dir() else None

    def drop_states(self, trial: str) -> None:
        """Delete every state of a trial."""
        states = self._trial(trial) / "state"
        with storing(states):
            remove_tree(states)

    # --- attempts and trials ------------------------------------------------------------------------------------------

    def add_attempt(self, attempt: Attempt) -> None:
        """Keep a try that did not end its trial. StoreError if that number is taken."""
        path = self._trial(attempt.trial) / f"attempt-{attempt.number:03d}.json"
        if path.exists():
            raise StoreError(f"{path} exists already.", "Attempts are numbered one after the other; report this.")
        self._write(path, attempt)

    def attempt(self, trial: str, number: int) -> Attempt | None:
        """One try that did not end its trial."""
        return self._read(self._trial(trial) / f"attempt-{number:03d}.json", Attempt)

    def attempt_keys(self) -> list[tuple[str, int]]:
        """(trial, number) of every try that did not end its trial, sorted."""
        files = (self.directory / "trials").glob("*/attempt-*.json")
        return sorted((file.parent.name, _number(file)) for file in files)

    def attempts(self, trial: str) -> list[Attempt]:
        """Every try that did not end the trial, in order."""
        numbers = sorted(_number(file) for file in self._trial(trial).glob("attempt-*.json"))
        return [record for number in numbers if (record := self.attempt(trial, number))]

    def end_trial(self, record: TrialRecord) -> None:
        """Record how a trial ended. It ends once: StoreError if another end is recorded already."""
        known = self.trial(record.id)
        if known is not None and known != record:
            raise StoreError(
                f"Trial {record.id[:12]} of {self.directory} has ended already.", "It is scored once; report this."
            )
        self._write(self._trial(record.id) / "trial.json", record)
        with storing(self._trial(record.id)):
            remove_tree(self._trial(record.id) / _SCRATCH)

    def trial(self, trial: str) -> TrialRecord | None:
        """How a trial ended, once it has."""
        return self._read(self._trial(trial) / "trial.json", TrialRecord)

    def trial_ids(self) -> list[str]:
        """Every trial that was begun, sorted."""
        folder = self.directory / "trials"
        return sorted(d.name for d in folder.iterdir() if _TRIAL_ID.match(d.name)) if folder.is_dir() else []

    def trials(self) -> list[TrialRecord]:
        """Every trial that ended."""
        return [record for trial in self.trial_ids() if (record := self.trial(trial))]

    def trial_stamps(self) -> dict[str, str]:
        """Size and time of change of the record of every trial that ended: differs when the record does."""
        stamps = {}
        for file in sorted((self.directory / "trials").glob("*/trial.json")):
            status = file.stat()
            stamps[file.parent.name] = f"{status.st_size}-{status.st_mtime_ns}"
        return stamps

    # --- files --------------------------------------------------------------------------------------------------------

    def _trial(self, trial: str) -> Path:
        if not _TRIAL_ID.match(trial):
            raise ValueError(f"{trial!r} is not the id of a trial")
        return self.directory / "trials" / trial

    @staticmethod
    def _task_files(folder: Path) -> list[Path]:
        return sorted(folder.glob("task-*.json"), key=_number)

    @staticmethod
    def _write(path: Path, record: BaseModel) -> None:
        write_atomically(path, record.model_dump_json(indent=1).encode() + b"\n")

    @staticmethod
    def _read(path: Path, model: type[R]) -> R | None:
        try:
            return model.model_validate_json(_bytes(path)) if path.exists() else None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the whole file"
            raise _damaged(path, f"{where}: {first['msg']}") from error


def run_directory(results: Path, run: str) -> Path:
    """Where the run with this id (`RunLock.id`) has its journal."""
    return results / RUNS / run


def run_directories(results: Path) -> list[Path]:
    """The folders of all runs in a results folder, sorted by id."""
    folder = results / RUNS
    return sorted(d for d in folder.iterdir() if (d / "run.json").is_file()) if folder.is_dir() else []


def dead_runs(results: Path) -> set[str]:
    """Ids of the runs that no living process works on: what they left on the machine may be removed."""
    folder = results / RUNS
    return {d.name for d in folder.iterdir() if not Journal(d).is_locked} if folder.is_dir() else set()


def _is_intact(state: Path, record: TaskRecord) -> bool:
    try:
        return hash_state(state) == record.state_hash
    except OSError:
        return False


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.", "Mend its permissions.") from error


def _number(path: Path) -> int:
    return int(re.findall(r"\d+", path.stem)[-1])


def _damaged(path: Path, what: str, remedy: str = "") -> StoreError:
    return StoreError(
        f"{path} is damaged ({what}).", remedy or "Delete that file; the same command repeats what it recorded."
    )
