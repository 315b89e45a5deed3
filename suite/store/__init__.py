"""Where results live: the journal of a run, and the DuckDB database merged from it."""

from __future__ import annotations

from suite.store.database import DATABASE
from suite.store.export import FORMATS, Format
from suite.store.files import hash_state
from suite.store.journal import Journal, dead_runs, run_directories, run_directory
from suite.store.merging import merge, merge_run
from suite.store.records import (
    Attempt,
    Entry,
    Machine,
    Phase,
    Resources,
    RunInfo,
    RunLock,
    Selection,
    TaskRecord,
    TrialKey,
    TrialRecord,
)
from suite.store.results import Answer, Results, StoredRun
from suite.store.schema import markdown

__all__ = [
    "DATABASE",
    "FORMATS",
    "Answer",
    "Attempt",
    "Entry",
    "Format",
    "Journal",
    "Machine",
    "Phase",
    "Resources",
    "Results",
    "RunInfo",
    "RunLock",
    "Selection",
    "StoredRun",
    "TaskRecord",
    "TrialKey",
    "TrialRecord",
    "dead_runs",
    "hash_state",
    "markdown",
    "merge",
    "merge_run",
    "run_directories",
    "run_directory",
]
