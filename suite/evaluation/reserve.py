"""Is there room? Asked before a run, so that a full disk does not end it in the middle."""

from __future__ import annotations

import shutil
from pathlib import Path

from suite.data import Scenario
from suite.errors import InfrastructureError
from suite.tracks import Track

_COPIES = 3
"""The newest state, the next one on its way in, and a copy in a cell's input folder."""
_MARGIN = 256 << 20


def needed_bytes(track: Track, slots: int, *, keep_states: bool) -> int:
    """Disk that a run may take at once: by the track's state budget, not by what learners are likely to use."""
    states = _COPIES
    if keep_states:
        tasks = max(Scenario.parse(track.scenario_for(name)).num_tasks for name in track.data_sets)
        states += tasks * track.seeds * (track.draws + len(track.evaluation))
    return slots * states * track.budgets.state_bytes + _MARGIN


def reserve_disk(folder: Path, track: Track, slots: int, *, keep_states: bool) -> None:
    """Raise InfrastructureError unless the file system of `folder` has room for the run."""
    needed, free = needed_bytes(track, slots, keep_states=keep_states), shutil.disk_usage(folder).free
    if free < needed:
        raise InfrastructureError(
            f"{folder} has {free >> 20} MiB free; this run may need {needed >> 20} MiB.",
            "Free some, or choose another disk with --results.",
        )
