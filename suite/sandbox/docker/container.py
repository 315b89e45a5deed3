"""A learner in a container."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from suite.errors import InfrastructureError, LearnerError, SuiteError
from suite.protocol import Method, Params
from suite.sandbox.calls import Calls
from suite.sandbox.docker import lifecycle
from suite.sandbox.docker.attach import AttachTransport
from suite.sandbox.docker.autopsy import autopsy, is_running
from suite.sandbox.docker.connect import Engine, engine_errors
from suite.sandbox.docker.inputs import copy_in, prepare_volume
from suite.sandbox.docker.outputs import read_outputs, weigh_outputs
from suite.sandbox.docker.spec import INSIDE, Placement, cpu_list
from suite.sandbox.gpu import gpu_gauge
from suite.sandbox.inbox import Inbox
from suite.sandbox.intake import disk_errors, remove_tree
from suite.sandbox.interface import Inside, Isolation, Launch, NoteHandler, Usage
from suite.sandbox.metering import Meter
from suite.sandbox.pump import Conversation
from suite.sandbox.verdicts import gone_early
from suite.status import Status


class DockerCell:
    """One container with a folder of its own."""

    inside: Inside = INSIDE

    def __init__(self, engine: Engine, launch: Launch, image: str, place: Placement, folder: Path) -> None:
        self._engine = engine
        self._launch = launch
        self._place = place
        self._folder = folder
        self._inbox = Inbox(folder)
        self._lock = threading.Lock()
        gpu = gpu_gauge(launch.gpu)
        self._container = lifecycle.create(engine, launch, image, place)
        try:
            if place.inputs is None:
                prepare_volume(engine, self._container)
            self._transport = AttachTransport(engine, self._container)
            try:
                lifecycle.start(engine, self._container, launch)
                self._meter = Meter(lifecycle.gauge(engine, self._container), gpu)
                self._talk = Conversation(self._transport, launch.limits.log_bytes, self._tick)
                self._calls = Calls(self._talk, self._kill, self._autopsy, self._second_look)
            except BaseException:
                self._transport.shut()
                self._transport.close()
                raise
        except BaseException:
            lifecycle.remove(engine, self._container)
            raise

    def _tick(self) -> None:
        self._meter.sample()

    def _kill(self) -> None:
        lifecycle.kill(self._engine, self._container)

    def _autopsy(self) -> SuiteError:
        return autopsy(self._engine, self._container, self._launch.limits)

    # --- talking ----------------------------------------------------------------------------------------------------

    def call(
        self, method: Method, params: Params, seconds: float, on_note: NoteHandler | None = None
    ) -> dict[str, Any]:
        """See `Cell.call`."""
        return self._calls.ask(method, params, seconds, on_note)

    def _second_look(self, error: LearnerError) -> SuiteError:
        return self._meter.second_look(self._overflow() or error)

    def _overflow(self) -> LearnerError | None:
        """That the output is over its limits, which may be what the learner crashed of: its disk was full.

        Its output ends with it, so a learner that did not live to tell has none to look at.
        """
        if not is_running(self._engine, self._container):
            return None
        try:
            self.pause()
            with self._archive() as chunks:
                weigh_outputs(chunks, self._launch.limits)
            self.resume()
        except LearnerError as error:
            return error if error.status is Status.STATE_TOO_LARGE else None
        return None

    # --- files ------------------------------------------------------------------------------------------------------

    @contextmanager
    def delivery(self, name: str) -> Iterator[Path]:
        """See `Cell.delivery`."""
        with self._inbox.stage(name) as folder:
            yield folder
        if self._place.inputs is None:
            copy_in(self._engine, self._container, folder)
            remove_tree(folder)
        else:
            self._inbox.deliver(folder)

    def collect(self, destination: Path) -> list[Path]:
        """See `Cell.collect`."""
        self.pause()
        with disk_errors("the learner's output cannot be stored"):
            destination.mkdir(parents=True, exist_ok=True)
            with self._archive() as chunks:
                files = read_outputs(chunks, destination, self._launch.limits)
        self._calls.check()
        return files

    @contextmanager
    def _archive(self) -> Iterator[Iterator[bytes]]:
        with engine_errors("hand out a learner's output"):
            stream, _ = self._engine.api.get_archive(self._container, INSIDE.out, chunk_size=1 << 20)
            with contextlib.closing(stream):
                yield stream

    # --- running ----------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """See `Cell.pause`; does nothing when it is paused already.

        Raises LearnerError CRASHED when there is nothing left to pause: with its learner, its output is gone.
        """
        if self._calls.is_paused:
            return
        self._calls.check()
        self._meter.sample()
        try:
            lifecycle.pause(self._engine, self._container)
        except InfrastructureError:
            if is_running(self._engine, self._container):
                raise
            self._talk.wait_for_end(1)
            self._calls.check()
            why = self._autopsy()
            self._calls.fail(gone_early() if isinstance(why, LearnerError) else why)
        self._calls.is_paused = True

    def resume(self, cpuset: tuple[int, ...] | None = None) -> None:
        """See `Cell.resume`; does nothing more than to move it when it runs already."""
        with engine_errors("resume a container"):
            if cpuset is not None:
                self._engine.api.update_container(self._container, cpuset_cpus=cpu_list(cpuset))
            if self._calls.is_paused:
                self._engine.api.unpause(self._container)
        self._calls.is_paused = False

    def usage(self) -> Usage:
        """See `Cell.usage`."""
        if not self._calls.is_closed:
            self._meter.sample()
        return self._meter.usage()

    def log_tail(self) -> str:
        """See `Cell.log_tail`."""
        return self._talk.log_tail()

    def close(self) -> None:
        """See `Cell.close`. What an engine that is gone cannot remove is left to `reap`, and logged."""
        with self._lock:
            if self._calls.is_closed:
                return
            self._calls.is_closed = True
        self._meter.sample()
        self._talk.close()
        if self._calls.is_paused and self._place.isolation is Isolation.GVISOR:
            lifecycle.unpause(self._engine, self._container)
        lifecycle.remove(self._engine, self._container)
        self._transport.close()
        remove_tree(self._folder)
