"""What a results folder holds, for reading: records, SQL, exports. Usable while a submit writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite.errors import UsageError
from suite.store.database import TIMEOUT_SECONDS, reading, rows
from suite.store.export import Format, export_tables
from suite.store.merging import merge
from suite.store.records import Attempt, Entry, RunInfo, Selection, TrialRecord
from suite.store.rows import Row, attempt_record, entry_record, run_record, selection_record, trial_record
from suite.store.schema import ATTEMPTS, ENTRIES, RUNS, SELECTIONS, TASK_COUNTS, TASKS, TRIALS


@dataclass(frozen=True)
class StoredRun:
    """All that is known of a run; trials and attempts in the order of their ids."""

    id: str
    info: RunInfo
    trials: Sequence[TrialRecord] = ()
    attempts: Sequence[Attempt] = ()
    selection: Selection | None = None
    entry: Entry | None = None


@dataclass(frozen=True)
class Answer:
    """What a query gave: its column names and rows."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


class Results:
    """The database of a results folder. Methods raise StoreError when it is locked or damaged."""

    def __init__(self, directory: Path, timeout: float = TIMEOUT_SECONDS) -> None:
        self.directory = directory
        self.timeout = timeout

    def refresh(self) -> None:
        """Merge what the journals have gained since; also builds a database that is absent."""
        merge(self.directory, self.timeout)

    def run_ids(self) -> list[str]:
        """Every run, the latest first."""
        answer = self.sql("SELECT run FROM runs ORDER BY started_at DESC, run")
        return [run for (run,) in answer.rows]

    def run(self, run: str) -> StoredRun:
        """All that is stored of a run. Raises UsageError if there is none of this id."""
        where, values = "run = ?", [run]
        with reading(self.directory, self.timeout) as connection:
            found = rows(connection, RUNS, where, values)
            trials, tasks, counts, attempts, selections, entries = (
                rows(connection, table, where, values)
                for table in (TRIALS, TASKS, TASK_COUNTS, ATTEMPTS, SELECTIONS, ENTRIES)
            )
        if not found:
            raise UsageError(f"There is no run {run!r} in {self.directory}.", "`suite results show` lists them.")
        info = run_record(found[0])
        tasks_of: dict[str, list[Row]] = defaultdict(list)
        counts_of: dict[str, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in tasks:
            tasks_of[row["trial"]].append(row)
        for row in counts:
            counts_of[row["trial"]][row["task"]].append(row)
        selection = selection_record(selections[0]) if selections else None
        return StoredRun(
            id=run,
            info=info,
            trials=[trial_record(info.lock, t, tasks_of[t["trial"]], counts_of[t["trial"]]) for t in trials],
            attempts=[attempt_record(row) for row in attempts],
            selection=selection,
            entry=entry_record(entries[0], selection) if entries else None,
        )

    def sql(self, query: str, values: Sequence[Any] = ()) -> Answer:
        """What a query gives. It can neither change anything nor reach other files; UsageError if it is wrong."""
        import duckdb

        with reading(self.directory, self.timeout) as connection:
            try:
                cursor = connection.execute(query, list(values))
                columns = [name for name, *_ in cursor.description or []]
                return Answer(columns, cursor.fetchall())
            except duckdb.Error as error:
                raise UsageError(
                    f"The query failed: {str(error).strip().splitlines()[0]}",
                    "docs/store.md describes the tables; the database is read-only.",
                ) from error

    def export(self, form: Format, directory: Path, *, comparable: bool = False) -> list[Path]:
        """Write every table to `directory`, one file each, rows in the order of their key; returns the files.

        `comparable` leaves out clocks, resources, machine and words: what remains is equal for equal runs.
        """
        return export_tables(self.directory, form, directory, comparable=comparable, timeout=self.timeout)
