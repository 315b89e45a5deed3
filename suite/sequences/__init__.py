"""CLDyB: search for challenging task sequences, and their files (CLDyB sections 3 and 5, appendices C and D).

Pure: learners are seen through `SearchLearner`, records through `Journal`. A search runs in this order:
`generation` calls `candidates` (stage A: `potentials`, `sampling`, `clustering`), then `search` or `mcts` (stage B)
on a `tree` whose rewards `explorer` learns once each.
"""

from __future__ import annotations

from suite.sequences.checks import Comparison, compare, pool_view, verify
from suite.sequences.environment import INITIAL, Hits, Part, Path, SearchLearner, Task, state_name
from suite.sequences.explorer import Ledger, Observer
from suite.sequences.files import SequenceFile, load_sequence, save_sequence, sequence_file, sequence_schema
from suite.sequences.generation import Outcome, PoolView, first_task, generate, search_identity
from suite.sequences.journal import DirectoryJournal, Journal, MemoryJournal
from suite.sequences.plan import Plan, plan_search
from suite.sequences.pool import ClassSplit, Pool, PoolClass, PoolDataset, split_class
from suite.sequences.settings import TEMPERATURES, Level, SearchSettings, Strategy

__all__ = [
    "INITIAL",
    "TEMPERATURES",
    "ClassSplit",
    "Comparison",
    "DirectoryJournal",
    "Hits",
    "Journal",
    "Ledger",
    "Level",
    "MemoryJournal",
    "Observer",
    "Outcome",
    "Part",
    "Path",
    "Plan",
    "Pool",
    "PoolClass",
    "PoolDataset",
    "PoolView",
    "SearchLearner",
    "SearchSettings",
    "SequenceFile",
    "Strategy",
    "Task",
    "compare",
    "first_task",
    "generate",
    "load_sequence",
    "plan_search",
    "pool_view",
    "save_sequence",
    "search_identity",
    "sequence_file",
    "sequence_schema",
    "split_class",
    "state_name",
    "verify",
]
