"""Submits learners of this process on a tiny track."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from suite.evaluation.bench import Stop
from suite.evaluation.events import Event
from suite.evaluation.submit import Request, submit_image
from suite.sandbox import MemorySandbox, Step
from suite.sdk import Learner
from suite.store.records import Entry

TRACK = """
name = "tiny"
title = "Tiny"
summary = "For tests."
group = "scratch"
is_reduced = true
scenario = "4 + 3x2"
draws = 2
seeds = 2

[tuning]
data_set = "letters-1:10"

[[evaluation]]
data_set = "digits"
similarity = "low"

[budgets]
task_seconds = 5
trial_seconds = 60
predict_seconds = 5
state_bytes = 4194304
"""


@dataclass
class Lab:
    """Submits learners of this process on the tiny track and keeps what was reported."""

    folder: Path
    data: Path
    learners: dict[str, type[Learner]]
    events: list[Event] = field(default_factory=list)
    track: str = TRACK
    listen: Callable[[Event], None] = lambda _event: None

    def request(self, image: str, **changes: object) -> Request:
        path = self.folder / "tiny.toml"
        path.write_text(self.track)
        values = {"results": self.folder / "results", "data_root": self.data, "retry_seconds": 0.0, **changes}
        return Request(image=image, track=str(path), **values)  # type: ignore[arg-type]

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self.listen(event)

    def submit(
        self,
        image: str,
        on_step: Callable[[Step], None] = lambda _step: None,
        stop: Stop | None = None,
        **changes: object,
    ) -> Entry:
        self.sandbox = MemorySandbox(self.learners, on_step)
        try:
            return submit_image(self.request(image, **changes), self._hear, stop, self.sandbox)
        finally:
            assert self.sandbox.live == 0, "a cell was left behind"
