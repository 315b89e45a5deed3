"""From journals to the database: idempotent, incremental, one short transaction per run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from suite.errors import StoreError
from suite.store.database import TIMEOUT_SECONDS, insert, writing
from suite.store.journal import Journal, run_directories
from suite.store.records import TrialRecord
from suite.store.rows import Row, attempt_row, count_rows, entry_row, run_row, selection_row, task_rows, trial_row
from suite.store.schema import ATTEMPTS, ENTRIES, RUNS, SELECTIONS, TASK_COUNTS, TASKS, TRIALS, Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_BATCH = 16  # trials in memory at once


def merge_run(results: Path, journal: Journal, timeout: float = TIMEOUT_SECONDS) -> None:
    """Bring the database of `results` up to a journal: what is there stays, what changed is replaced.

    Raises StoreError if the database stays locked for `timeout` seconds (try again later: nothing is lost), or if a
    file of either is damaged.
    """
    info = journal.run()
    if info is None:
        return
    run = info.lock.id
    with writing(results, timeout) as connection:
        _replace(connection, RUNS, run, [run_row(run, info)])
        _merge_trials(connection, run, journal)
        _merge_attempts(connection, run, journal)
        entry = journal.entry()
        selection = journal.selection() or (entry.selection if entry else None)
        _replace(connection, SELECTIONS, run, [selection_row(run, selection)] if selection else [])
        _replace(connection, ENTRIES, run, [entry_row(run, entry)] if entry else [])


def merge(results: Path, timeout: float = TIMEOUT_SECONDS) -> None:
    """`merge_run` for the journal of every run of `results`; nothing happens where there is none."""
    for directory in run_directories(results):
        merge_run(results, Journal(directory), timeout)


def _merge_trials(connection: DuckDBPyConnection, run: str, journal: Journal) -> None:
    known = dict(connection.execute("SELECT trial, journal_stamp FROM trials WHERE run = ?", [run]).fetchall())
    stamps = journal.trial_stamps()
    changed = [trial for trial, stamp in stamps.items() if known.get(trial) != stamp]
    for start in range(0, len(changed), _BATCH):
        batch = changed[start : start + _BATCH]
        trials = [trial for name in batch if (trial := journal.trial(name))]
        outdated = [name for name in batch if name in known]
        for table, made in _trial_tables(run, trials, stamps):
            if outdated:
                connection.execute(
                    f'DELETE FROM "{table.name}" WHERE run = ? AND list_contains(?, trial)',  # noqa: S608
                    [run, outdated],
                )
            insert(connection, table, made)


def _trial_tables(
    run: str, trials: Sequence[TrialRecord], stamps: dict[str, str]
) -> list[tuple[Table, list[Row]]]:  # fmt: skip
    try:
        return [
            (TRIALS, [trial_row(run, t, stamps[t.id]) for t in trials]),
            (TASKS, [row for t in trials for row in task_rows(run, t)]),
            (TASK_COUNTS, [row for t in trials for row in count_rows(run, t)]),
        ]
    except ValueError as error:
        raise StoreError(
            f"A trial of run {run} holds impossible accuracy counts: {error}.",
            "Its journal was changed by hand; delete the trial's folder and run the same command again.",
        ) from error


def _merge_attempts(connection: DuckDBPyConnection, run: str, journal: Journal) -> None:
    known = set(connection.execute("SELECT trial, number FROM attempts WHERE run = ?", [run]).fetchall())
    insert(
        connection,
        ATTEMPTS,
        [
            attempt_row(run, attempt)
            for trial, number in journal.attempt_keys()
            if (trial, number) not in known and (attempt := journal.attempt(trial, number))
        ],
    )


def _replace(connection: DuckDBPyConnection, table: Table, run: str, new: list[Row]) -> None:
    connection.execute(f'DELETE FROM "{table.name}" WHERE run = ?', [run])  # noqa: S608
    insert(connection, table, new)
