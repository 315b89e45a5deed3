"""Where results live: the journal of a run, and the DuckDB database merged from it."""

from __future__ import annotations

from suite.store.files import hash_state
from suite.store.journal import Journal, dead_runs, run_directories, run_directory
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

__all__ = [
    "Attempt",
    "Entry",
    "Journal",
    "Machine",
    "Phase",
    "Resources",
    "RunInfo",
    "RunLock",
    "Selection",
    "TaskRecord",
    "TrialKey",
    "TrialRecord",
    "dead_runs",
    "hash_state",
    "run_directories",
    "run_directory",
]
