"""What a cell uses, sampled from the host: its own word is never asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from suite.errors import LearnerError, SuiteError
from suite.sandbox.gpu import GpuGauge
from suite.sandbox.interface import Usage


@dataclass(frozen=True)
class Reading:
    """One look at a cell."""

    cpu_seconds: float
    memory_bytes: int
    """Anonymous and shared memory at this moment; shared memory includes files in tmpfs, page cache is left out."""
    pids: frozenset[int] = frozenset()


Gauge = Callable[[], Reading | None]
"""Reads a cell; None when it is gone or cannot be read."""


class Meter:
    """Keeps the highest memory and the latest CPU time seen; an overshoot between two samples stays unseen."""

    def __init__(self, gauge: Gauge, gpu: GpuGauge | None = None) -> None:
        self._gauge = gauge
        self._gpu = gpu
        self._lock = threading.Lock()
        self._cpu_seconds: float | None = None
        self._peak_bytes: int | None = None

    def sample(self) -> Reading | None:
        """Look once more."""
        with self._lock:
            reading = self._gauge()
            if reading is not None:
                self._cpu_seconds = max(self._cpu_seconds or 0.0, reading.cpu_seconds)
                self._peak_bytes = max(self._peak_bytes or 0, reading.memory_bytes)
                if self._gpu is not None:
                    self._gpu.sample(reading.pids)
            return reading

    def usage(self) -> Usage:
        """All that was seen."""
        gpu = self._gpu
        return Usage(
            cpu_seconds=self._cpu_seconds,
            peak_memory_bytes=self._peak_bytes,
            peak_gpu_bytes=gpu.peak_bytes if gpu else None,
            energy_joules=gpu.joules if gpu else None,
        )

    def second_look(self, error: LearnerError) -> SuiteError:
        """`error`, unless the cell's GPU is lost: then that is why."""
        return (self._gpu.fault() if self._gpu else None) or error


def process_tree_gauge(pid: int) -> Gauge:
    """Reads a process of this machine and its descendants. Children that were not waited for lose their CPU time."""

    def read() -> Reading | None:
        import psutil

        try:
            root = psutil.Process(pid)
            tree = [root, *root.children(recursive=True)]
        except psutil.Error:
            return None
        seconds, memory = 0.0, 0
        for process in tree:
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            seconds += times.user + times.system + times.children_user + times.children_system
            memory += _anonymous_and_shared(process.pid)
        return Reading(seconds, memory, frozenset(p.pid for p in tree))

    return read


def _anonymous_and_shared(pid: int) -> int:
    try:
        fields = _table(Path(f"/proc/{pid}/status").read_text(), ":")
        return sum(int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem") if name in fields)
    except (OSError, ValueError):
        return 0


def cgroup_gauge(
    pid: int, container: str, root: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc")
) -> Gauge | None:
    """Reads the control group of a container whose first process is `pid`, in version 1 or 2.

    None when this machine cannot see it (a remote engine, another namespace): its path must name the container.
    """
    try:
        lines = [line.split(":", 2) for line in (proc / str(pid) / "cgroup").read_text().splitlines()]
    except (OSError, ValueError):
        return None
    folders = {c: path for _, controllers, path in lines for c in controllers.split(",") if container in path}
    if "memory" in folders and "cpuacct" in folders:
        memory = root / "memory" / folders["memory"].lstrip("/")
        cpu = _named_folder(root, "cpuacct", "cpu,cpuacct") / folders["cpuacct"].lstrip("/")
        return _gauge_v1(memory, cpu) if memory.is_dir() and cpu.is_dir() else None
    if "" in folders:
        folder = root / folders[""].lstrip("/")
        return _gauge_v2(folder) if folder.is_dir() else None
    return None


def _named_folder(root: Path, *names: str) -> Path:
    return next((root / name for name in names if (root / name).is_dir()), root / names[0])


def _gauge_v1(memory: Path, cpu: Path) -> Gauge:
    def read() -> Reading | None:
        try:
            stat = _table((memory / "memory.stat").read_text())
            seconds = int((cpu / "cpuacct.usage").read_text()) / 1e9
            return Reading(seconds, int(stat["total_rss"]) + int(stat["total_shmem"]), _pids(memory))
        except (OSError, KeyError, ValueError):
            return None

    return read


def _gauge_v2(folder: Path) -> Gauge:
    def read() -> Reading | None:
        try:
            stat = _table((folder / "memory.stat").read_text())
            seconds = int(_table((folder / "cpu.stat").read_text())["usage_usec"]) / 1e6
            return Reading(seconds, int(stat["anon"]) + int(stat["shmem"]), _pids(folder))
        except (OSError, KeyError, ValueError):
            return None

    return read


def _pids(folder: Path) -> frozenset[int]:
    return frozenset(map(int, (folder / "cgroup.procs").read_text().split()))


def _table(text: str, separator: str | None = None) -> dict[str, str]:
    pairs = (line.split(separator, 1) for line in text.splitlines())
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}
