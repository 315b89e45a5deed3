"""What the harness costs, as ratios measured side by side in one run: `make bench`.

Strict Docker trials over the same trials in this process; a spare cell over a cold start; handing a task's data over;
a state of 150 MB out of a container and into the next. Medians over interleaved repeats. Nothing here is asserted: a
loaded machine gives other figures, so look at the spread too.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from suite.data import ClassPlan, DataSet, Origin, Plan, Task, Writer, registry, write_data_set, write_task
from suite.evaluation.authoring import build_learner
from suite.evaluation.bench import Bench
from suite.evaluation.folders import copy_folder, fresh
from suite.evaluation.plan import trial_spec
from suite.evaluation.trial import run_trial
from suite.protocol import ImageShape, LearnParams, SetupParams
from suite.provenance import cpu_model, usable_cpus
from suite.sandbox import GIB, MIB, Identity, Launch, Limits, MemorySandbox, Sandbox, Spares, open_sandbox
from suite.sdk.server import load_class
from suite.store import Journal
from suite.tracks import Track, parse_track

LEARNER = '''
"""Works for a fixed number of matrix products a task, whatever the data, and carries a state of the size asked for."""
import numpy as np
from suite.sdk import Choice, Learner, Space

class Works(Learner):
    space = Space(products=Choice([1]), state_mib=Choice([0]))
    def learn(self, task):
        a = np.full((256, 256), 0.5, np.float32)
        for _ in range(self.context.hyperparameters["products"]):
            a = np.tanh(a @ a / 64)
        self.seen = max(task.classes) + 1
        self.ballast = np.zeros(self.context.hyperparameters["state_mib"] << 18, np.float32)
    def predict(self, images):
        return np.tile(images.reshape(len(images), -1)[:, :1].astype(np.float32), self.seen) * np.arange(self.seen)
    def state_dict(self):
        return {"seen": self.seen, "ballast": self.ballast}
    def load_state_dict(self, state):
        self.seen, self.ballast = state["seen"], state["ballast"]
'''
DOCKERFILE = """FROM continual-suite/base-numpy
COPY works.py /app/
WORKDIR /app
ENTRYPOINT ["python", "-m", "suite.sdk", "works:Works"]
"""
TRACK = """
name = "bench"
title = "Bench"
summary = "Three tasks."
group = "scratch"
is_reduced = true
scenario = "4 + 3x2"
draws = 1
seeds = 1
[tuning]
data_set = "letters-1:10"
[[evaluation]]
data_set = "digits"
similarity = "low"
[budgets]
memory_bytes = 2147483648
state_bytes = 268435456
"""
TASK_SECONDS = 10.0
REPEATS = 3


@dataclass(frozen=True)
class Row:
    """One figure."""

    what: str
    figure: str
    spread: str
    goal: str


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        identity = _build(folder)
        docker = stack.enter_context(open_sandbox("docker"))
        memory = stack.enter_context(MemorySandbox({"works": load_class(f"{folder}/image/works.py:Works")}))
        print(f"{cpu_model()}, {len(usable_cpus())} CPUs, load {os.getloadavg()[0]:.1f}\n")
        rows = [
            *strict_over_in_process(folder, docker, memory, identity),
            *spare_over_cold(docker, identity),
            *task_data(folder),
            *state_out_and_in(folder, docker, identity),
        ]
    width = [max(len(getattr(row, field)) for row in rows) for field in ("what", "figure", "spread")]
    for row in rows:
        print(f"{row.what:<{width[0]}}  {row.figure:>{width[1]}}  {row.spread:<{width[2]}}  {row.goal}")


def _build(folder: Path) -> Identity:
    image = folder / "image"
    image.mkdir()
    (image / "works.py").write_text(LEARNER)
    (image / "Dockerfile").write_text(DOCKERFILE)
    return build_learner(image, "continual-suite-bench:latest", {}, lambda _line: None)


# --- a whole trial ----------------------------------------------------------------------------------------------------


def strict_over_in_process(folder: Path, docker: Sandbox, memory: Sandbox, identity: Identity) -> Iterator[Row]:
    """The same trial of three tasks of some ten seconds, in turn in Docker with spares and in this process."""
    point = {"products": _products(TASK_SECONDS), "state_mib": 1}
    track = parse_track(TRACK, "bench")
    data = registry.prepare("digits", folder / "data")
    ratios, extra = [], []
    for repeat in range(REPEATS):
        strict = _trial(folder / f"strict-{repeat}", track, data, docker, identity, identity.image, point)
        plain = _trial(folder / f"plain-{repeat}", track, data, memory, identity, "works", point)
        ratios.append(strict / plain)
        extra.append((strict - plain) / 3)
    goal = "goal <= 1.15 (later 1.05)"
    yield Row("strict Docker trial / in-process trial (wall clock)", *_ratio(ratios), goal)
    yield Row(
        "  what isolation adds to a task", f"{statistics.median(extra):.2f} s", "", "start, copies, prediction cell"
    )


def _trial(
    folder: Path, track: Track, data: DataSet, sandbox: Sandbox, identity: Identity, image: str, point: dict[str, int]
) -> float:
    """Wall-clock seconds of one trial."""
    cpus = usable_cpus()
    journal = Journal(folder)
    limits = Limits(memory_bytes=2 * GIB, output_bytes=512 * MIB, file_bytes=512 * MIB)
    launch = Launch(image, limits, cpuset=cpus[:1])
    with closing(Spares(sandbox, identity.manifest, cpus[1:] if sandbox.isolation.is_ranked else ())) as spares:
        bench = Bench(
            track=track,
            manifest=identity.manifest,
            launch=launch,
            cells=spares,
            load=lambda _name: data,
            log=journal,
            run_key=bytes(32),
            report=lambda _event: None,
        )
        spec = trial_spec(track, identity.fingerprint, "evaluation", "digits", dict(point), 0)
        started = time.monotonic()
        run_trial(bench, spec)
        return time.monotonic() - started


def _products(seconds: float) -> int:
    """How many of the learner's products take so long on one thread of this machine."""
    a = np.full((256, 256), 0.5, np.float32)
    started, done = time.process_time(), 0
    while time.process_time() - started < 1.0:
        a = np.tanh(a @ a / 64)
        done += 1
    return int(done * seconds)


# --- parts ------------------------------------------------------------------------------------------------------------


def spare_over_cold(docker: Sandbox, identity: Identity) -> Iterator[Row]:
    """From asking for a cell to a cell that may work: a cold start, and a spare that waits paused."""
    setup = SetupParams(
        image=ImageShape(height=32, width=32), hyperparameters={"products": 1, "state_mib": 0}, learner_seed=1
    )
    launch = Launch(identity.image)
    cold, warm = [], []
    for _ in range(REPEATS):
        with closing(Spares(docker, identity.manifest, usable_cpus())) as spares:
            with _timed(cold):
                cell, _ = spares.take(launch, setup)
                cell.resume()
            cell.close()
            spares.prepare(launch, setup)
            time.sleep(5)  # the spare is ready well before
            with _timed(warm):
                cell, _ = spares.take(launch, setup)
                cell.resume()
            cell.close()
    yield Row("cold cell (numpy image)", f"{statistics.median(cold):.2f} s", _range(cold), "")
    yield Row("spare cell", f"{statistics.median(warm):.3f} s", _range(warm), "")
    yield Row("cold / spare", *_ratio([c / w for c, w in zip(cold, warm, strict=True)]), "")


def task_data(folder: Path) -> Iterator[Row]:
    """Copies of a task's images on fresh inodes, where the learner will read them."""
    for mebibytes, goal in ((16, "goal < 20 ms"), (256, "goal >= 1 GB/s")):
        data = _data_set(folder / f"set-{mebibytes}", mebibytes)
        times: list[float] = []
        for repeat in range(REPEATS + 1):
            target = folder / f"drop-{mebibytes}-{repeat}"
            with _timed(times):
                write_task(data, Task(0, tuple(range(len(data))), tuple(range(len(data)))), target)
            shutil.rmtree(target)
        seconds = statistics.median(times[1:])
        speed = mebibytes * MIB / seconds / 1e9
        yield Row(f"task data, {mebibytes} MiB", f"{seconds * 1e3:.1f} ms ({speed:.1f} GB/s)", _range(times[1:]), goal)


def _data_set(folder: Path, mebibytes: int) -> DataSet:
    per_class = mebibytes * MIB // 4 // (64 * 64 * 3)
    images = np.random.default_rng(0).integers(0, 255, (per_class, 64, 64, 3), dtype=np.uint8)
    origin = Origin(licence="none", source="random numbers", split="seeded")
    plan = Plan(folder.name, 1, 64, [ClassPlan(f"c{i}", per_class, 1) for i in range(4)], origin)

    def fill(writer: Writer) -> None:
        for index in range(4):
            writer.put("train", index, 0, images)
            writer.put("test", index, 0, images[:1])

    return write_data_set(folder, plan, fill)


def state_out_and_in(folder: Path, docker: Sandbox, identity: Identity) -> Iterator[Row]:
    """A state of 150 MB copied out of a paused container, and into the input folder of the next."""
    point = {"products": 1, "state_mib": 143}
    setup = SetupParams(image=ImageShape(height=64, width=64), hyperparameters=point, learner_seed=1)
    data = _data_set(folder / "tiny", 1)
    limits = Limits(memory_bytes=2 * GIB, output_bytes=512 * MIB, file_bytes=512 * MIB)
    out: list[float] = []
    into: list[float] = []
    for _ in range(REPEATS):
        state = fresh(folder / "state")
        with closing(Spares(docker, identity.manifest)) as spares:
            cell, _ = spares.take(Launch(identity.image, limits), setup)
            with closing(cell):
                with cell.delivery("data") as inbox:
                    write_task(data, Task(0, (0,), (0,)), inbox)
                cell.resume()
                cell.call("learn", LearnParams(task=0, classes=[0], data=cell.inside.data, out=cell.inside.out), 60)
                with _timed(out):
                    cell.collect(state)
            cell, _ = spares.take(Launch(identity.image, limits), setup)
            with closing(cell), _timed(into), cell.delivery("state") as inbox:
                copy_folder(state, inbox)
    yield Row("state of 150 MB out of a container", f"{statistics.median(out):.2f} s", _range(out), "")
    yield Row("state of 150 MB into the next", f"{statistics.median(into):.2f} s", _range(into), "")


# --- figures ----------------------------------------------------------------------------------------------------------


@contextmanager
def _timed(into: list[float]) -> Iterator[None]:
    started = time.monotonic()
    yield
    into.append(time.monotonic() - started)


def _ratio(values: list[float]) -> tuple[str, str]:
    return f"{statistics.median(values):.3f}", f"({min(values):.3f} to {max(values):.3f})"


def _range(values: list[float]) -> str:
    return f"({min(values) * 1e3:.0f} to {max(values) * 1e3:.0f} ms)"


if __name__ == "__main__":
    main()
