"""The leaderboard entry that a run amounts to, and why it is not ranked where it is not. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from suite.status import Status
from suite.store.records import Entry, RunLock, Selection, TrialRecord
from suite.tracks import Track


def entry_of(track: Track, lock: RunLock, selection: Selection, trials: Sequence[TrialRecord]) -> Entry:
    """The entry after all trials of the run ended.

    An evaluation set with a failed seed reads failed, with the kind of its first; when no draw was eligible, every set
    reads failed with the kind of the tuning phase (BEEF in the paper).
    """
    states = {part.data_set: _state(part.data_set, selection, trials) for part in track.evaluation}
    reasons = lock.unranked_because
    is_complete = all(status is Status.OK for status in states.values())
    return Entry(
        run=lock.id,
        submission=lock.submission,
        track=track.name,
        is_complete=is_complete,
        is_ranked=is_complete and not reasons,
        unranked_because=reasons if is_complete else [*reasons, "an evaluation set failed"],
        selection=selection,
        data_sets=states,
    )


def _state(data_set: str, selection: Selection, trials: Sequence[TrialRecord]) -> Status:
    if selection.failure is not None:
        return selection.failure
    seeds = sorted(
        (t for t in trials if t.key.phase == "evaluation" and t.key.data_set == data_set),
        key=lambda t: t.key.seed_index,
    )
    return next((t.status for t in seeds if t.status is not Status.OK), Status.OK if seeds else Status.INTERRUPTED)
