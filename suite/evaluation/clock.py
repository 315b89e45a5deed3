"""The host's clock over one `learn`, split at the learner's `stage` marks."""

from __future__ import annotations

import time
from collections.abc import Callable

from suite.protocol import Progress, ProgressNote, StageNote


class StageClock:
    """Adds up the seconds of `train` and `post`; the total is the host's, the split as marked by the learner."""

    def __init__(self, on_progress: Callable[[Progress], None]) -> None:
        self._on_progress = on_progress
        self._since = 0.0
        self._stage = "train"
        self._seconds = {"train": 0.0, "post": 0.0}

    def start(self) -> None:
        """The request goes out now."""
        self._since = time.monotonic()

    def note(self, note: ProgressNote | StageNote, arrived: float) -> None:
        """A notification came in at monotonic time `arrived`."""
        if isinstance(note, StageNote):
            self._seconds[self._stage] += max(arrived - self._since, 0.0)
            self._since, self._stage = arrived, note.params.stage
        else:
            self._on_progress(note.params)

    def stop(self) -> tuple[float, float]:
        """The answer is here: seconds in `train` and in `post`."""
        self._seconds[self._stage] += max(time.monotonic() - self._since, 0.0)
        return self._seconds["train"], self._seconds["post"]
