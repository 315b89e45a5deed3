"""How a trial ended: one vocabulary for journal, database, command line and site."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Outcome of a trial or of one attempt at it (DESIGN 4)."""

    OK = "ok"
    DIVERGED = "diverged"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    STATE_TOO_LARGE = "state_too_large"
    BATCH_DEPENDENT = "batch_dependent"
    CRASHED = "crashed"
    PROTOCOL_ERROR = "protocol_error"
    INFRASTRUCTURE = "infrastructure"
    INTERRUPTED = "interrupted"

    @property
    def look(self) -> StatusLook:
        """How to show it."""
        return _LOOKS[self]

    @property
    def counts_as_failure(self) -> bool:
        """Whether the learner is answerable: such a seed makes its data set read failed."""
        return _LOOKS[self].counts_as_failure

    @property
    def is_retried(self) -> bool:
        """Whether the machine or the user is answerable: such an attempt is never scored."""
        return _LOOKS[self].is_retried


@dataclass(frozen=True)
class StatusLook:
    """Text, colour (a rich style and a CSS class suffix) and severity (0 fine .. 3 bad) of a status."""

    text: str
    colour: str
    severity: int
    counts_as_failure: bool = False
    is_retried: bool = False


_LOOKS: dict[Status, StatusLook] = {
    Status.OK: StatusLook("ok", "green", 0),
    Status.DIVERGED: StatusLook("diverged", "red", 3, counts_as_failure=True),
    Status.TIMED_OUT: StatusLook("timed out", "red", 3, counts_as_failure=True),
    Status.OUT_OF_MEMORY: StatusLook("out of memory", "red", 3, counts_as_failure=True),
    Status.STATE_TOO_LARGE: StatusLook("state too large", "red", 3, counts_as_failure=True),
    Status.BATCH_DEPENDENT: StatusLook("batch dependent", "red", 3, counts_as_failure=True),
    Status.CRASHED: StatusLook("crashed", "red", 3, counts_as_failure=True),
    Status.PROTOCOL_ERROR: StatusLook("protocol error", "red", 3, counts_as_failure=True),
    Status.INFRASTRUCTURE: StatusLook("infrastructure", "yellow", 2, is_retried=True),
    Status.INTERRUPTED: StatusLook("interrupted", "yellow", 1, is_retried=True),
}
