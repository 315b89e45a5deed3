"""Learners inside the harness's own process: the double that tests and property tests drive, with faults on demand.

It obeys the same contract as the other runtimes, with two differences that nothing in one process can remove: a call
that hangs is not ended at its deadline but judged after it, and memory is not limited.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from suite.errors import ImageError, LearnerError
from suite.protocol import NOTE, Method, Params, Response, decode, encode
from suite.sandbox.inbox import Inbox, inside_folder
from suite.sandbox.intake import remove_tree, take_folder
from suite.sandbox.interface import Identity, Isolation, Launch, NoteHandler, Usage
from suite.sandbox.text import Tail
from suite.sandbox.verdicts import result_of, with_tail
from suite.sdk import Learner, Session
from suite.seeds import content_hash
from suite.status import Status

StepKind: TypeAlias = Literal["start", "call", "answer", "delivery", "collect", "pause", "resume", "close"]


@dataclass(frozen=True)
class Step:
    """A point in a cell's life at which a fault can strike."""

    kind: StepKind
    """`call` is before the learner works, `answer` after it has."""
    cell: int
    """Number of the cell, from 1."""
    name: str = ""
    """The method called, or the folder delivered."""


_TURN = threading.RLock()
"""Learners of one process share its random generators: a spare's set-up must not reseed them in the midst of a task."""

OnStep = Callable[[Step], None]
"""Called at every step; what it raises is raised by the step."""


class MemorySandbox:
    """Knows learners by name; `Launch.image` is such a name."""

    isolation = Isolation.NONE

    def __init__(self, learners: Mapping[str, type[Learner]], on_step: OnStep = lambda _step: None) -> None:
        self._learners = learners
        self._on_step = on_step
        self._numbers = itertools.count(1)
        self._live: dict[int, MemoryCell] = {}

    @property
    def live(self) -> int:
        """Cells that were started and not closed."""
        return len(self._live)

    def identify(self, image: str) -> Identity:
        """The fingerprint is made of the class's name and manifest."""
        manifest = self._learner(image).manifest()
        return Identity(image, content_hash([image, manifest.model_dump(mode="json")]), manifest)

    def start(self, launch: Launch) -> MemoryCell:
        """See `Sandbox.start`."""
        number = next(self._numbers)
        self._on_step(Step("start", number))
        cell = MemoryCell(number, self._learner(launch.image), launch, self._on_step, self._forget)
        self._live[number] = cell
        return cell

    def reap(self, is_dead: Callable[[dict[str, str]], bool]) -> int:
        """Close the cells of dead runs."""
        dead = [cell for cell in self._live.values() if is_dead(cell.launch.labels)]
        for cell in dead:
            cell.discard()
        return len(dead)

    def _learner(self, image: str) -> type[Learner]:
        if image not in self._learners:
            raise ImageError(f"There is no learner {image!r}.", f"Choose one of {sorted(self._learners)}.")
        return self._learners[image]

    def _forget(self, number: int) -> None:
        self._live.pop(number, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for cell in list(self._live.values()):
            cell.discard()


class MemoryCell:
    """One session of one learner class, in a temporary folder."""

    def __init__(
        self,
        number: int,
        learner: type[Learner],
        launch: Launch,
        on_step: OnStep,
        forget: Callable[[int], None],
    ) -> None:
        self.launch = launch
        self._number = number
        self._on_step = on_step
        self._forget = forget
        self._folder = Path(tempfile.mkdtemp(prefix="continual-suite-"))
        self._inbox = Inbox(self._folder)
        self._out = self._folder / "out"
        self._out.mkdir()
        self.inside = inside_folder(self._folder, launch)
        self._on_note: NoteHandler | None = None
        self._session = Session(learner, self._notify)
        self._log = Tail(launch.limits.log_bytes)
        self._requests = 0
        self._error: LearnerError | None = None
        self._cpu_seconds = 0.0
        self._is_paused = self._is_closed = False

    def call(
        self, method: Method, params: Params, seconds: float, on_note: NoteHandler | None = None
    ) -> dict[str, Any]:
        """See `Cell.call`."""
        if self._error is not None:
            raise self._error
        if self._is_paused or self._is_closed:
            raise RuntimeError("the cell is closed" if self._is_closed else "the cell is paused: resume it first")
        self._on_step(Step("call", self._number, method))
        self._requests += 1
        message = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params.model_dump(mode="json")}
        self._on_note = on_note
        started, worked = time.monotonic(), time.process_time()
        with _TURN:
            # Through text and back, so that only what can travel does.
            answer = decode(encode(self._session.handle(decode(json.dumps(message).encode()))))
        self._cpu_seconds += time.process_time() - worked
        response = Response.model_validate(answer)
        if response.error is not None:
            self._log.add(f"{response.error.message}\n".encode())
        if time.monotonic() - started > seconds:
            message_text = f"The learner did not answer {method!r} within {seconds:g} s."
            self._error = with_tail(LearnerError(Status.TIMED_OUT, message_text), self.log_tail())
            raise self._error
        self._on_step(Step("answer", self._number, method))
        try:
            return result_of(response, method)
        except LearnerError as error:
            raise with_tail(error, self.log_tail()) from None

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        note = NOTE.validate_python({"jsonrpc": "2.0", "method": method, "params": params})
        if self._on_note is not None:
            self._on_note(note, time.monotonic())

    @contextmanager
    def delivery(self, name: str) -> Iterator[Path]:
        """See `Cell.delivery`."""
        with self._inbox.stage(name) as folder:
            yield folder
        self._on_step(Step("delivery", self._number, name))
        self._inbox.deliver(folder)

    def collect(self, destination: Path) -> list[Path]:
        """See `Cell.collect`."""
        self.pause()
        self._on_step(Step("collect", self._number))
        return take_folder(self._out, destination, self.launch.limits)

    def pause(self) -> None:
        """See `Cell.pause`."""
        self._on_step(Step("pause", self._number))
        self._is_paused = True

    def resume(self, cpuset: tuple[int, ...] | None = None) -> None:  # noqa: ARG002  (there is nothing to move)
        """See `Cell.resume`."""
        self._on_step(Step("resume", self._number))
        self._is_paused = False

    def usage(self) -> Usage:
        """CPU seconds of its calls; the rest cannot be told apart from the harness."""
        return Usage(cpu_seconds=self._cpu_seconds)

    def log_tail(self) -> str:
        """The errors it answered with: its prints go to the harness's own streams."""
        return self._log.text()

    def close(self) -> None:
        """See `Cell.close`."""
        if not self._is_closed:
            self._on_step(Step("close", self._number))
        self.discard()

    def discard(self) -> None:
        """Remove all that it left, without a step."""
        self._is_closed = True
        self._forget(self._number)
        remove_tree(self._folder)
