"""`suite doctor`: is this machine fit to run submissions? Looks, and changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

from suite.data import data_root, registry
from suite.errors import DataError
from suite.provenance import gpu_driver, gpus, memory_bytes, usable_cpus
from suite.tracks import load_track, track_names

Level: TypeAlias = Literal["ok", "warning", "problem"]
GIB = 1 << 30
_MIN_DISK = 10 * GIB
_MIN_MEMORY = 8 * GIB
_MIN_ENGINE = (20, 10)


@dataclass(frozen=True)
class Line:
    """What was found of one thing, and the remedy where it is not fine."""

    subject: str
    level: Level
    text: str
    remedy: str = ""


def examine(results: Path, root: Path | None = None) -> Iterator[Line]:
    """Every line of the report, in order."""
    yield from _engine()
    yield from _gpus()
    yield _disk(results)
    yield _memory()
    yield from _extras()
    yield from _data(data_root(root))


def _engine() -> Iterator[Line]:
    import docker

    try:
        client = docker.from_env(timeout=10)
    except docker.errors.DockerException as error:
        first = str(error).splitlines()[0][:200]
        yield Line("engine", "problem", f"no Docker engine answers ({first})", "Start it, or run `make engine`.")
        return
    try:
        info = client.info()
        yield _engine_version(info)
        yield from _engine_kind(info, str(client.api.base_url))
        yield from _images(client)
    except docker.errors.DockerException as error:
        yield Line("engine", "problem", f"the engine stopped answering ({error})", "Look at its log.")
    finally:
        client.close()


def _engine_version(info: dict[str, Any]) -> Line:
    version = str(info.get("ServerVersion", ""))
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    text = f"Docker {version}, {info.get('Driver')}, cgroup v{info.get('CgroupVersion', '1')}"
    if numbers < _MIN_ENGINE:
        return Line("engine", "warning", text, "Use 20.10 or newer: nothing older was tried.")
    return Line("engine", "ok", text)


def _engine_kind(info: dict[str, Any], url: str) -> Iterator[Line]:
    name = str(info.get("OperatingSystem", "")).lower()
    if "podman" in name or "podman" in str(info.get("ServerVersion", "")).lower():
        yield Line("engine kind", "problem", "Podman answers in Docker's place", "It ignores GPU requests: use Docker.")
    if not url.startswith(("http+docker://", "unix://")) and "localhost" not in url and "127.0.0.1" not in url:
        yield Line(
            "engine place",
            "warning",
            "the engine is remote: data are uploaded, not mounted",
            "Run the suite beside the engine for honest times.",
        )
    if any("rootless" in str(option) for option in info.get("SecurityOptions") or []):
        yield Line(
            "engine mode", "warning", "the engine is rootless: limits may not hold", "Use a rootful engine to rank."
        )
    if not any("seccomp" in str(option) for option in info.get("SecurityOptions") or []):
        yield Line("seccomp", "problem", "the engine has no seccomp", "Use a kernel and an engine with seccomp.")
    runtimes = sorted(info.get("Runtimes") or {})
    has_runsc = "runsc" in runtimes
    yield Line("gVisor", "ok", "offered (--sandbox gvisor)" if has_runsc else "not offered (optional)")


def _images(client: Any) -> Iterator[Line]:
    tags = {tag for image in client.images.list() for tag in image.tags}
    wanted = ("continual-suite/base-numpy:latest", "continual-suite/base-torch:latest")
    missing = [tag for tag in wanted if tag not in tags]
    if missing:
        yield Line(
            "images", "warning", f"{', '.join(missing)} not built", "`suite build` or `make images` builds them."
        )
    else:
        learners = sorted(tag for tag in tags if tag.startswith("suite-"))
        yield Line("images", "ok", f"base images and {len(learners)} learner images")


def _gpus() -> Iterator[Line]:
    found = gpus()
    if not found:
        text = "no NVIDIA GPU" + ("" if find_spec("pynvml") else " (nvidia-ml-py is not installed)")
        yield Line("GPU", "warning", text, "Learners run on the CPU; install nvidia-ml-py and a driver to use GPUs.")
        return
    for uuid, model in found:
        yield Line("GPU", "ok", f"{model} ({uuid}), driver {gpu_driver()}")


def _disk(results: Path) -> Line:
    folder = next(parent for parent in (results.absolute(), *results.absolute().parents) if parent.exists())
    free = shutil.disk_usage(folder).free
    text = f"{free / GIB:.0f} GiB free at {folder}"
    if free < _MIN_DISK:
        return Line("disk", "problem", text, "Free some: states and images need 10 GiB at least.")
    return Line("disk", "ok", text)


def _memory() -> Line:
    total = memory_bytes()
    text = f"{total / GIB:.0f} GiB, {len(usable_cpus())} CPUs"
    if total < _MIN_MEMORY:
        return Line("memory", "warning", text, "Tracks allow a learner several GiB: use a larger machine.")
    return Line("memory", "ok", text)


def _extras() -> Iterator[Line]:
    for extra, package in (("learners", "torch"), ("data", "sklearn")):
        if find_spec(package) is None:
            yield Line(
                f"extra '{extra}'",
                "warning",
                f"{package} is not installed",
                f"`pip install 'continual-suite[{extra}]'` if you want it.",
            )


def _data(root: Path) -> Iterator[Line]:
    ready, missing = [], []
    for name in track_names():
        try:
            for data_set in load_track(name).data_sets:
                if registry.describe(data_set, root).kind != "embedded":
                    registry.load(data_set, root)
        except DataError:
            missing.append(name)
        else:
            ready.append(name)
    yield Line(
        "data", "ok" if ready else "problem", f"tracks that can run: {', '.join(ready) or 'none'} (data in {root})"
    )
    if missing:
        yield Line(
            "data", "warning", f"{len(missing)} tracks lack data", "`suite submit` on one of them says what to prepare."
        )
