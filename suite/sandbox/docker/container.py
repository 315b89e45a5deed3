"""A learner in a container."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import docker.errors
import requests

from suite.errors import ImageError, InfrastructureError, LearnerError, SuiteError
from suite.protocol import Method, Params
from suite.sandbox.channel import EndedError
from suite.sandbox.docker.attach import AttachTransport
from suite.sandbox.docker.autopsy import autopsy, is_running
from suite.sandbox.docker.connect import Engine, engine_errors
from suite.sandbox.docker.inputs import copy_in, prepare_volume
from suite.sandbox.docker.outputs import read_outputs, weigh_outputs
from suite.sandbox.docker.spec import INSIDE, Placement, container_spec, cpu_list
from suite.sandbox.gpu import gpu_gauge
from suite.sandbox.inbox import Inbox
from suite.sandbox.intake import disk_errors, remove_tree
from suite.sandbox.interface import Inside, Launch, NoteHandler, Usage
from suite.sandbox.metering import Meter, cgroup_gauge
from suite.sandbox.pump import Conversation
from suite.sandbox.text import quote
from suite.sandbox.verdicts import gone_early, result_of, with_tail
from suite.status import Status

_log = logging.getLogger(__name__)
_PAUSE_SECONDS = 10.0


class DockerCell:
    """One container with a folder of its own."""

    inside: Inside = INSIDE

    def __init__(self, engine: Engine, launch: Launch, image: str, place: Placement, folder: Path) -> None:
        self._engine = engine
        self._launch = launch
        self._place = place
        self._folder = folder
        self._inbox = Inbox(folder)
        self._error: SuiteError | None = None
        self._is_paused = self._is_closed = False
        self._lock = threading.Lock()
        gpu = gpu_gauge(launch.gpu)
        self._container = _create(engine, launch, image, place)
        try:
            if place.inputs is None:
                prepare_volume(engine, self._container)
            self._transport = AttachTransport(engine, self._container)
            try:
                _start(engine, self._container, launch)
                self._meter = Meter(_gauge(engine, self._container), gpu)
                self._talk = Conversation(self._transport, launch.limits.log_bytes, self._tick)
            except BaseException:
                self._transport.shut()
                self._transport.close()
                raise
        except BaseException:
            _remove(engine, self._container)
            raise

    def _tick(self) -> None:
        self._meter.sample()

    # --- talking ----------------------------------------------------------------------------------------------------

    def call(
        self, method: Method, params: Params, seconds: float, on_note: NoteHandler | None = None
    ) -> dict[str, Any]:
        """See `Cell.call`."""
        if self._error is not None:
            raise self._error
        if self._is_closed or self._is_paused:
            raise RuntimeError("the cell is closed" if self._is_closed else "the cell is paused: resume it first")
        try:
            response = self._talk.ask(method, params, seconds, on_note)
        except EndedError:
            self._fail(autopsy(self._engine, self._container, self._launch.limits))
        except LearnerError as error:
            self._fail(error)
        try:
            return result_of(response, method)
        except LearnerError as error:
            raise with_tail(
                self._overflow() or error if error.status is Status.CRASHED else error, self.log_tail()
            ) from None

    def _fail(self, error: SuiteError) -> NoReturn:
        """The cell is dead: end it, and raise why, now and at every later call."""
        self._error = error
        if isinstance(error, LearnerError):
            with_tail(error, self.log_tail())
        self._talk.close()
        _kill(self._engine, self._container)
        raise error

    def _overflow(self) -> LearnerError | None:
        """That the output is over its limits, which may be what the learner crashed of: its disk was full."""
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
        self._talk.check()
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
        if self._is_paused:
            return
        if self._error is not None:
            raise self._error
        self._meter.sample()
        try:
            _pause(self._engine, self._container)
        except InfrastructureError:
            if is_running(self._engine, self._container):
                raise
            self._talk.wait_for_end(1)
            self._talk.check()
            why = autopsy(self._engine, self._container, self._launch.limits)
            self._fail(gone_early() if isinstance(why, LearnerError) else why)
        self._is_paused = True

    def resume(self, cpuset: tuple[int, ...] | None = None) -> None:
        """See `Cell.resume`; does nothing more than to move it when it runs already."""
        with engine_errors("resume a container"):
            if cpuset is not None:
                self._engine.api.update_container(self._container, cpuset_cpus=cpu_list(cpuset))
            if self._is_paused:
                self._engine.api.unpause(self._container)
        self._is_paused = False

    def usage(self) -> Usage:
        """See `Cell.usage`."""
        if not self._is_closed:
            self._meter.sample()
        return self._meter.usage()

    def log_tail(self) -> str:
        """See `Cell.log_tail`."""
        return self._talk.log_tail()

    def close(self) -> None:
        """See `Cell.close`. What an engine that is gone cannot remove is left to `reap`, and logged."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._meter.sample()
        self._talk.close()
        _remove(self._engine, self._container)
        self._transport.close()
        remove_tree(self._folder)


def _create(engine: Engine, launch: Launch, image: str, place: Placement) -> str:
    spec = container_spec(launch, image, place)
    with engine_errors("create a container"):
        try:
            spec["host_config"] = engine.api.create_host_config(**spec["host_config"])
            return str(engine.api.create_container(**spec)["Id"])
        except docker.errors.ImageNotFound as error:
            raise ImageError(f'There is no image "{quote(launch.image)}".', "Build it with `suite build`.") from error


def _start(engine: Engine, container: str, launch: Launch) -> None:
    with engine_errors("start a container"):
        try:
            engine.api.start(container)
        except docker.errors.APIError as error:
            if _is_of_the_image(error):
                raise ImageError(
                    f'The image "{quote(launch.image)}" does not start: {quote(str(error.explanation))}',
                    "Check its ENTRYPOINT, and that it has no files of its own under /suite and /tmp.",
                ) from error
            raise


def _is_of_the_image(error: docker.errors.APIError) -> bool:
    """Whether a start failed because of what an image holds: no entry point, or files where its mounts belong.

    A GPU's hook fails with the same words, and is the machine's.
    """
    text = str(error.explanation or "")
    if "hook" in text or "nvidia" in text:
        return False
    return bool(error.status_code == requests.codes.bad_request) or "error mounting" in text


def _gauge(engine: Engine, container: str) -> Any:
    with engine_errors("inspect a container"):
        pid = int(engine.api.inspect_container(container)["State"].get("Pid") or 0)
    return (cgroup_gauge(pid, container) if pid else None) or (lambda: None)


def _pause(engine: Engine, container: str) -> None:
    """Freeze a container. Version 1 of control groups cannot freeze what is throttled or forking at that moment."""
    deadline = time.monotonic() + _PAUSE_SECONDS
    with engine_errors("pause a container"):
        while True:
            try:
                engine.api.pause(container)
            except docker.errors.APIError as error:
                if "unable to freeze" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return


def _kill(engine: Engine, container: str) -> None:
    """End a container whose attach stream is shut. That it has ended already, or the engine has, is no error here."""
    try:
        with engine_errors("kill a container"):
            engine.api.kill(container)
    except InfrastructureError as error:
        _log.debug("%s", error)


def _remove(engine: Engine, container: str) -> None:
    try:
        with engine_errors("remove a container"), contextlib.suppress(docker.errors.NotFound):
            engine.api.remove_container(container, force=True, v=True)
    except InfrastructureError as error:
        _log.warning("Container %s is left behind: %s", container[:12], error)
