"""The part of a journal that may be committed and shown: what was measured, without secrets, states and locks."""

from __future__ import annotations

from pathlib import Path

from suite.errors import StoreError
from suite.store.files import write_atomically
from suite.store.journal import Journal, run_directory

_PUBLISHED = ("run.json", "selection.json", "entry.json", "trials/*/trial.json", "trials/*/attempt-*.json")


def publish(journal: Journal, results: Path) -> Path:
    """Copy the records of a finished run to the results folder `results`; returns the run's folder there.

    The run key, states, and task records of unfinished trials stay behind. The copy is a journal like any other: it can
    be merged, and a site can be built from it. Raises StoreError if the run has no entry yet, or a record is damaged.
    """
    info, entry = journal.run(), journal.entry()
    if info is None or entry is None:
        raise StoreError(f"{journal.directory} has no entry yet.", "Let `suite submit` finish the run first.")
    journal.trials()  # read once, so that nothing damaged is published
    destination = run_directory(results, info.lock.id)
    for pattern in _PUBLISHED:
        for file in sorted(journal.directory.glob(pattern)):
            write_atomically(destination / file.relative_to(journal.directory), file.read_bytes())
    return destination
