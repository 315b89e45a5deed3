"""Learners as plain child processes: for development, and for machines without a container engine.

Nothing is kept from a learner here that the user could not reach: results are marked `isolation = none` and never
ranked. An image is `module:Class` or `file.py:Class`, run by `python -m suite.sdk` with the interpreter, the installed
packages and the working folder of the harness.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from suite.errors import InfrastructureError, LearnerError
from suite.protocol import Method, Params
from suite.sandbox.calls import Calls
from suite.sandbox.environment import learner_environment
from suite.sandbox.folders import Folders
from suite.sandbox.gpu import gpu_gauge
from suite.sandbox.inbox import Inbox, inside_folder
from suite.sandbox.intake import disk_errors, remove_tree, take_folder
from suite.sandbox.interface import Identity, Isolation, Launch, NoteHandler, Usage
from suite.sandbox.metering import Meter, process_tree_gauge
from suite.sandbox.process_transport import PipeTransport, has_exited
from suite.sandbox.pump import Conversation
from suite.sandbox.sources import Target, fingerprint_source, parse_target, search_path
from suite.sandbox.verdicts import crashed, gone_early, out_of_memory
from suite.sandbox.warmup import manifest_of

_KILL_SECONDS = 5.0
_INHERITED = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "SYSTEMROOT")


class ProcessSandbox:
    """Starts learners as child processes under `root` (a temporary folder if None)."""

    isolation = Isolation.NONE

    def __init__(self, root: Path | None = None) -> None:
        self._folders = Folders(root, "process")

    def identify(self, image: str) -> Identity:
        """Fingerprint: sha256 over the sources that `fingerprint_source` names and the versions that they run with."""
        target = parse_target(image)
        return Identity(image, fingerprint_source(target), manifest_of(self, Launch(image)))

    def start(self, launch: Launch) -> ProcessCell:
        """See `Sandbox.start`."""
        target = parse_target(launch.image)
        folder = self._folders.make(launch.labels)
        try:
            return ProcessCell(launch, target, folder)
        except BaseException:
            remove_tree(folder)
            raise

    def reap(self, is_dead: Callable[[dict[str, str]], bool]) -> int:
        """Remove folders of dead runs; their processes ended with the stdin that the harness held."""
        return self._folders.reap(is_dead)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folders.close()


class ProcessCell:
    """One child process in a folder of its own."""

    def __init__(self, launch: Launch, target: Target, folder: Path) -> None:
        self._launch = launch
        self._folder = folder
        self._inbox = Inbox(folder)
        scratch, out = folder / "scratch", folder / "out"
        with disk_errors("a cell's folder cannot be made"):
            scratch.mkdir()
            out.mkdir()
        self._out = out
        self.inside = inside_folder(self._folder, launch)
        self._is_over_memory = False
        self._lock = threading.Lock()
        gpu = gpu_gauge(launch.gpu)
        self._process = _spawn(launch, target, scratch)
        self._meter = Meter(process_tree_gauge(self._process.pid), gpu)
        self._transport = PipeTransport(self._process)
        self._talk = Conversation(self._transport, launch.limits.log_bytes, self._tick)
        self._calls = Calls(self._talk, self._kill, self._autopsy, self._meter.second_look)
        self._limit()

    def call(
        self, method: Method, params: Params, seconds: float, on_note: NoteHandler | None = None
    ) -> dict[str, Any]:
        """See `Cell.call`."""
        return self._calls.ask(method, params, seconds, on_note)

    def _autopsy(self) -> LearnerError:
        deadline = time.monotonic() + _KILL_SECONDS
        while not has_exited(self._process):
            if time.monotonic() > deadline:
                return crashed("closed its streams")
            time.sleep(0.01)
        self._signal(signal.SIGKILL)  # what is left of its group, while its number is still its own
        code = self._process.wait()
        if self._is_over_memory:
            return out_of_memory(self._launch.limits.memory_bytes)
        return crashed(f"was killed by signal {-code}" if code < 0 else f"exited with code {code}")

    @contextmanager
    def delivery(self, name: str) -> Iterator[Path]:
        """See `Cell.delivery`."""
        with self._inbox.stage(name) as folder:
            yield folder
        self._inbox.deliver(folder)

    def collect(self, destination: Path) -> list[Path]:
        """See `Cell.collect`."""
        self.pause()
        self._calls.check()
        if self._process.returncode is not None or has_exited(self._process):
            self._calls.fail(gone_early())
        return take_folder(self._out, destination, self._launch.limits)

    def pause(self) -> None:
        """See `Cell.pause`; does nothing when it is paused already."""
        if not self._calls.is_paused:
            self._meter.sample()
            self._signal(signal.SIGSTOP)
            self._calls.is_paused = True

    def resume(self, cpuset: tuple[int, ...] | None = None) -> None:
        """See `Cell.resume`; does nothing more than to move it when it runs already."""
        if cpuset is not None:
            _pin(self._process.pid, cpuset)
        if self._calls.is_paused:
            self._calls.is_paused = False
            self._signal(signal.SIGCONT)

    def usage(self) -> Usage:
        """See `Cell.usage`."""
        if self._process.returncode is None:
            self._meter.sample()
        return self._meter.usage()

    def log_tail(self) -> str:
        """See `Cell.log_tail`."""
        return self._talk.log_tail()

    def close(self) -> None:
        """See `Cell.close`."""
        with self._lock:
            if self._calls.is_closed:
                return
            self._calls.is_closed = True
        if self._process.returncode is None:
            self._meter.sample()
        self._kill()
        self._transport.close()
        remove_tree(self._folder)

    def _tick(self) -> None:
        reading = self._meter.sample()
        if reading is not None and reading.memory_bytes > self._launch.limits.memory_bytes:
            self._is_over_memory = True
            self._signal(signal.SIGKILL)

    def _limit(self) -> None:
        limits, pid = self._launch.limits, self._process.pid
        with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
            for kind, value in (
                (resource.RLIMIT_NOFILE, limits.open_files),
                (resource.RLIMIT_FSIZE, limits.file_bytes),
                (resource.RLIMIT_CORE, 0),
            ):
                resource.prlimit(pid, kind, (value, value))
        if self._launch.cpuset is not None:
            _pin(pid, self._launch.cpuset)

    def _signal(self, number: signal.Signals) -> None:
        """To the whole process group; a learner that is gone already is no error."""
        if self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _kill(self) -> None:
        import psutil

        self._talk.close()
        if self._process.returncode is not None:  # reaped: its number may be another's by now
            return
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                child.kill()  # also those that left the group
        self._signal(signal.SIGKILL)
        self._process.wait()


def _spawn(launch: Launch, target: Target, scratch: Path) -> subprocess.Popen[bytes]:
    variables = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    variables |= learner_environment(launch, str(scratch))
    variables |= {"PYTHONPATH": os.pathsep.join(search_path()), "CUDA_VISIBLE_DEVICES": launch.gpu or ""}
    command = [sys.executable, "-m", "suite.sdk", target.argument]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=scratch,
            env=variables,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise InfrastructureError(f"A learner process cannot be started: {error}.", "See `suite doctor`.") from error


def _pin(pid: int, cpuset: tuple[int, ...]) -> None:
    """Move every thread of a process to `cpuset`; what it forks later follows."""
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(thread.name), cpuset)
