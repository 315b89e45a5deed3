"""Where and with what a run took place: machine, versions, source (G10). Reads the system, changes nothing."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

import psutil

_PACKAGES = ("continual-suite", "numpy", "torch", "timm", "docker", "duckdb", "safetensors", "pydantic")
_SECONDS = 10


def cpu_model() -> str:
    """The processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1).strip() if match else platform.processor()


def memory_bytes() -> int:
    """Physical memory of the machine."""
    return int(psutil.virtual_memory().total)


def usable_cpus() -> tuple[int, ...]:
    """CPUs that this process may run on, in order."""
    return tuple(sorted(os.sched_getaffinity(0)))


def package_versions() -> dict[str, str]:
    """Versions of the packages that matter, of those that are installed."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def source_revision(folder: Path) -> tuple[str, bool]:
    """Commit of the working tree that holds `folder` and whether it has changes; ('', False) outside one."""

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(folder), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    return (commit, bool(git("status", "--porcelain"))) if commit else ("", False)


def gpus() -> list[tuple[str, str]]:
    """(UUID, model) of every NVIDIA GPU; empty without a driver or without nvidia-ml-py."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return [(str(pynvml.nvmlDeviceGetUUID(h)), str(pynvml.nvmlDeviceGetName(h))) for h in handles]
    finally:
        pynvml.nvmlShutdown()


def gpu_driver() -> str:
    """Version of the NVIDIA driver, '' without one."""
    path = Path("/proc/driver/nvidia/version")
    match = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", path.read_text(encoding="utf-8")) if path.exists() else None
    return match.group(1) if match else ""
