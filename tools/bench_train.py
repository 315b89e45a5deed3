"""How fast the from-scratch learners train: `make bench-train`.

First table: images per second in the second task (so that teachers and old branches take part), and the share of the
training loop, and of the whole call, that is neither forward, backward nor optimiser step. Second table (`--peer`): CPU
seconds and accuracy of four methods on the configuration that public toolboxes were timed with: scikit-learn's digits,
5 tasks x 2 classes, 5 epochs, memory 200. All in this process, without containers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "containers" / "reference"))

PEER_METHODS = ("replay", "icarl", "wa", "der")
PEER_EPOCHS, PEER_MEMORY = 5, 200


@dataclass
class Clock:
    """Seconds spent in gradients and steps, in the loop, and images passed."""

    inner: float = 0.0
    loop: float = 0.0
    images: int = 0


@dataclass(frozen=True)
class Speed:
    """One row of the first table."""

    method: str
    device: str
    images_per_second: float
    loop_overhead: float
    """Share of the training loop outside forward, backward and step."""
    call_overhead: float
    """Share of the whole `learn` outside forward, backward and step (herding, means and copies included)."""


@dataclass(frozen=True)
class PeerRun:
    """One row of the second table."""

    method: str
    batch_size: int
    cpu_seconds: float
    final_linear: float
    final_nme: float
    average_linear: float
    average_nme: float


def instrumented(clock: Clock, seconds: Callable[[], float]) -> Callable[[], None]:
    """Time the engine's inner parts; returns what puts everything back."""
    import torch
    from reference import engine, gradients, scratch

    original_call, original_fit, original_step = gradients.Eager.__call__, engine.fit, torch.optim.SGD.step

    def call(self: Any, batch: Any) -> Any:
        start = seconds()
        loss = original_call(self, batch)
        clock.inner += seconds() - start
        clock.images += len(batch.labels)
        return loss

    def step(self: Any, closure: Any = None) -> Any:
        start = seconds()
        result = original_step(self, closure)
        clock.inner += seconds() - start
        return result

    def fit(*args: Any, **options: Any) -> None:
        start = seconds()
        original_fit(*args, **options)
        clock.loop += seconds() - start

    patches = [(gradients.Eager, "__call__", call), (torch.optim.SGD, "step", step), (scratch, "fit", fit)]
    for owner, name, timed in patches:
        setattr(owner, name, timed)

    def restore() -> None:
        gradients.Eager.__call__ = original_call  # type: ignore[method-assign]
        torch.optim.SGD.step = original_step  # type: ignore[method-assign]
        scratch.__dict__["fit"] = original_fit

    return restore


def make_learner(slug: str, device: str, threads: int, memory: int, **values: Any) -> Any:
    """A learner of 32x32 images with the first values of its space, and the given ones."""
    from reference.catalogue import SCRATCH

    from suite.protocol.messages import ExemplarBudget, ImageShape, SetupParams
    from suite.sdk import Context
    from suite.sdk.server import load_class

    found = load_class(SCRATCH[slug])
    point = {name: dimension.at(0.0) for name, dimension in found.space.root.items()}
    point |= {"post_ft_epochs": 1} if "post_ft_epochs" in point else {}
    setup = SetupParams(
        device=device,  # type: ignore[arg-type]
        threads=threads,
        image=ImageShape(height=32, width=32),
        hyperparameters=point | values,
        learner_seed=0,
        exemplars=ExemplarBudget(total=memory),
    )
    model = found(Context(setup))
    model.setup()
    return model


def digits() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(images, labels) to train and to test on: scikit-learn's digits, times four, as RGB; 1437 and 360."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    small = np.clip(data.images * 16, 0, 255).astype(np.uint8)
    images = np.repeat(small.repeat(4, 1).repeat(4, 2)[..., None], 3, 3)
    order = np.random.RandomState(1993).permutation(10)
    labels = np.argsort(order)[data.target]
    train, test = train_test_split(np.arange(len(labels)), test_size=360, stratify=labels, random_state=0)
    return (images[train], labels[train]), (images[test], labels[test])


def task_of(data: tuple[np.ndarray, np.ndarray], index: int, *, with_past: bool = False) -> Any:
    """Task `index` of two classes, class by class."""
    from suite.sdk import Task

    def of(classes: list[int]) -> tuple[np.ndarray, np.ndarray]:
        rows = np.concatenate([np.flatnonzero(data[1] == c) for c in classes])
        return data[0][rows], data[1][rows].astype(np.int64)

    past = of(list(range(2 * index))) if with_past and index else (None, None)
    return Task(index, [2 * index, 2 * index + 1], *of([2 * index, 2 * index + 1]), *past)


def measure_speed(slug: str, device: str, threads: int, batch_size: int, epochs: int) -> Speed:
    """Images per second of the second task."""
    import torch

    def seconds() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time() if threads == 1 else time.perf_counter()

    train, _ = digits()
    settings = {"epochs": epochs, "batch_size": batch_size, "scheduler": "cosine", "lr": 0.01}
    model = make_learner(slug, device, threads, PEER_MEMORY, **settings)
    privileged = "past_data" in model.privileges
    model.learn(task_of(train, 0))
    clock = Clock()
    restore = instrumented(clock, seconds)
    try:
        start = seconds()
        model.learn(task_of(train, 1, with_past=privileged))
        whole = seconds() - start
    finally:
        restore()
    return Speed(slug, device, clock.images / clock.loop, 1 - clock.inner / clock.loop, 1 - clock.inner / whole)


def peer_run(slug: str, batch_size: int, device: str, threads: int) -> PeerRun:
    """The toolboxes' configuration: 5 tasks x 2 digits, 5 epochs, rate 0.1 x 0.1 at 3 and 4, memory 200."""
    import torch

    torch.manual_seed(0)
    train, test = digits()
    settings: dict[str, Any] = {
        "epochs": PEER_EPOCHS, "batch_size": batch_size, "lr": 0.1, "scheduler": "step", "num_milestones": "3 4",
        "lr_decay": 0.1, "weight_decay": 2e-4, "augmentation": "crop_jitter",
    }  # fmt: skip
    settings |= {"icarl": {"temperature": 2, "lambda_aux": 1}, "wa": {"temperature": 2, "lambda_kd": 0}}.get(slug, {})
    settings |= {"lambda_aux": 1} if slug == "der" else {}
    model = make_learner(slug, device, threads, PEER_MEMORY, **settings)
    linear, nearest, spent = [], [], 0.0
    for index in range(5):
        task = task_of(train, index)
        start = time.process_time()
        model.options["head"] = "nme"
        model.learn(task)
        seen = test[1] < 2 * index + 2
        truth = test[1][seen]
        nearest.append(float((model.predict(test[0][seen]).argmax(1) == truth).mean()))
        model.options["head"] = "linear"
        linear.append(float((model.predict(test[0][seen]).argmax(1) == truth).mean()))
        spent += time.process_time() - start
        print(f"  {slug}, batch {batch_size}: task {index + 1} of 5, {spent:.0f} CPU s", file=sys.stderr, flush=True)
    scores = (linear[-1], nearest[-1], float(np.mean(linear)), float(np.mean(nearest)))
    return PeerRun(slug, batch_size, spent, *scores)


def table(rows: list[list[str]]) -> str:
    """Markdown; the first row is the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def speed_table(rows: list[Speed]) -> str:
    """The first table."""
    head = ["method", "device", "images/s", "loop outside fwd/bwd/step", "learn outside fwd/bwd/step"]
    body = [
        [
            r.method,
            r.device,
            f"{r.images_per_second:.0f}",
            f"{100 * r.loop_overhead:.1f} %",
            f"{100 * r.call_overhead:.1f} %",
        ]
        for r in rows
    ]
    return table([head, *body])


def peer_table(rows: list[PeerRun]) -> str:
    """The second table; percentages."""
    head = ["method", "batch", "CPU s", "final linear / NME", "average linear / NME"]
    body = [
        [
            r.method,
            str(r.batch_size),
            f"{r.cpu_seconds:.0f}",
            f"{100 * r.final_linear:.1f} / {100 * r.final_nme:.1f}",
            f"{100 * r.average_linear:.1f} / {100 * r.average_nme:.1f}",
        ]
        for r in rows
    ]
    return table([head, *body])


def main() -> None:
    """Parse, measure, print."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch
    from reference.catalogue import SCRATCH

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", help="default: all")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=1, help="of each stage in the first table")
    parser.add_argument("--peer", nargs="*", type=int, metavar="BATCH", help="also the second table, at these batches")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    speeds = []
    for slug in arguments.methods or sorted(SCRATCH):
        speeds.append(measure_speed(slug, arguments.device, arguments.threads, arguments.batch_size, arguments.epochs))
        print(f"  {slug}: {speeds[-1].images_per_second:.0f} images/s", file=sys.stderr, flush=True)
    print(speed_table(speeds))
    runs = [
        peer_run(slug, batch, arguments.device, arguments.threads)
        for batch in (arguments.peer if arguments.peer is not None else [])
        for slug in PEER_METHODS
    ]
    if runs:
        print("\n" + peer_table(runs))
    if arguments.json:
        arguments.json.write_text(json.dumps({"speed": [asdict(r) for r in speeds], "peer": [asdict(r) for r in runs]}))


if __name__ == "__main__":
    main()
