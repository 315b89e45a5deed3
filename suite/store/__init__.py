"""Where results live: the journal of a run, and the DuckDB database merged from it."""

from __future__ import annotations

from suite.store.board import BASELINE, Board, Margin, Standing, boards, major_minor
from suite.store.database import DATABASE
from suite.store.export import FORMATS, Format
from suite.store.files import hash_state
from suite.store.journal import Journal, dead_runs, run_directories, run_directory
from suite.store.merging import merge, merge_run
from suite.store.publishing import publish
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
from suite.store.summary import DrawSummary, EntrySummary, SetSummary, TaskSummary, difference, summarise_run
from suite.store.track_view import TrackView

__all__ = [
    "BASELINE",
    "DATABASE",
    "FORMATS",
    "Answer",
    "Attempt",
    "Board",
    "DrawSummary",
    "Entry",
    "EntrySummary",
    "Format",
    "Journal",
    "Machine",
    "Margin",
    "Phase",
    "Resources",
    "Results",
    "RunInfo",
    "RunLock",
    "Selection",
    "SetSummary",
    "Standing",
    "StoredRun",
    "TaskRecord",
    "TaskSummary",
    "TrackView",
    "TrialKey",
    "TrialRecord",
    "boards",
    "dead_runs",
    "difference",
    "hash_state",
    "major_minor",
    "markdown",
    "merge",
    "merge_run",
    "publish",
    "run_directories",
    "run_directory",
    "summarise_run",
]
