"""What a sandbox is: the small interface that the Docker, process and in-memory runtimes obey.

A *cell* is one started learner. Its life: `Sandbox.start` -> `call("describe")` -> `call("setup")` -> [`pause`] ->
`delivery(...)` puts data where the learner can read them -> [`resume`] -> `call("learn")` or `call("predict")` ->
`collect` copies the outputs out of the paused cell -> `close`. A cell serves one task or one prediction, never two.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from suite.protocol import Manifest, Method, Params, ProgressNote, StageNote

GIB = 1 << 30
MIB = 1 << 20


class Isolation(StrEnum):
    """How well a learner is kept apart from the machine; stored with every result."""

    NONE = "none"
    DOCKER = "docker"
    GVISOR = "gvisor"

    @property
    def is_ranked(self) -> bool:
        """Whether results under it may be ranked."""
        return self is not Isolation.NONE


@dataclass(frozen=True)
class Limits:
    """What one cell may use; the sandbox enforces it, an overrun is the learner's failure."""

    memory_bytes: int = 8 * GIB
    cpus: int = 1
    pids: int = 256
    scratch_bytes: int = GIB
    shm_bytes: int = 256 * MIB
    output_bytes: int = 4 * GIB
    """State, scores and features together."""
    output_files: int = 256
    file_bytes: int = 4 * GIB
    """Longest single file."""
    open_files: int = 1024
    log_bytes: int = 64 * 1024
    """Tail of stderr that is kept."""
    setup_seconds: float = 120.0
    """For start, `describe` and `setup` together."""


@dataclass(frozen=True)
class Launch:
    """What to start: equal launches give cells that look the same from inside."""

    image: str
    limits: Limits = Limits()
    gpu: str | None = None
    """UUID of the one GPU that the cell may use."""
    cpuset: tuple[int, ...] | None = None
    """Host CPUs that the cell may use; None leaves the choice to the system."""
    weights: Path | None = None
    """A folder of pretrained weights, mounted read-only."""
    labels: dict[str, str] = field(default_factory=dict)
    """Marks on everything that the cell leaves on the machine (at least the run), for reaping."""


@dataclass(frozen=True)
class Identity:
    """What an image is: equal fingerprints, equal submissions (G10)."""

    image: str
    fingerprint: str
    manifest: Manifest


@dataclass(frozen=True)
class Inside:
    """Absolute paths as the learner sees them; the same in both phases."""

    data: str = "/suite/in/data"
    state: str = "/suite/in/state"
    items: str = "/suite/in/items"
    weights: str = "/suite/weights"
    out: str = "/suite/out"


@dataclass(frozen=True)
class Usage:
    """What a cell has used since it started, seen from the host."""

    cpu_seconds: float | None = None
    peak_memory_bytes: int | None = None
    """Sampled anonymous + shared memory (page cache is not the learner's)."""
    peak_gpu_bytes: int | None = None
    energy_joules: float | None = None


NoteHandler = Callable[[ProgressNote | StageNote, float], None]
"""Receives a notification and the monotonic time of its arrival on the host."""


class Cell(Protocol):
    """One started learner. Its methods raise LearnerError (with the Status) for what the learner does wrong, and
    InfrastructureError for what the machine does wrong."""

    inside: Inside

    def call(
        self, method: Method, params: Params, seconds: float, on_note: NoteHandler | None = None
    ) -> dict[str, Any]:
        """Send a request, return the result object (a JSON object, not yet checked against its model).

        An answer later than `seconds` is LearnerError(TIMED_OUT), and the cell is dead.
        """
        ...

    def delivery(self, name: str) -> AbstractContextManager[Path]:
        """A host folder to fill; on exit its files lie in the learner's folder `data`, `state` or `items`, read-only,
        on inodes of their own."""
        ...

    def collect(self, destination: Path) -> list[Path]:
        """Pause the cell and copy its output folder out: regular files with plain names, within the limits."""
        ...

    def pause(self) -> None:
        """Stop the learner from running at all."""
        ...

    def resume(self, cpuset: tuple[int, ...] | None = None) -> None:
        """Let it run again, on other CPUs if given."""
        ...

    def usage(self) -> Usage:
        """What it has used so far."""
        ...

    def log_tail(self) -> str:
        """The end of its stderr: display text, control characters escaped."""
        ...

    def close(self) -> None:
        """Kill it and remove all that it left; safe to call twice and after any failure."""
        ...


class Sandbox(Protocol):
    """A runtime."""

    isolation: Isolation

    def identify(self, image: str) -> Identity:
        """Fingerprint and manifest of an image. Raises ImageError if it is missing, refused, or no learner."""
        ...

    def start(self, launch: Launch) -> Cell:
        """Start a learner; returns before it is ready."""
        ...

    def reap(self, is_dead: Callable[[dict[str, str]], bool]) -> int:
        """Remove what runs of this suite left behind whose labels `is_dead` accepts; returns how many things."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
