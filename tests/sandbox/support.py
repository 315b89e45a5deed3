"""Shared by the tests of the sandbox: a trial of one task in miniature."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from suite.protocol import DescribeParams, ImageShape, LearnParams, PredictParams, SetupParams
from suite.sandbox import MIB, Cell, Launch, Limits, NoteHandler, Sandbox

LEARNERS = Path(__file__).parent / "learners"
LIMITS = Limits(
    memory_bytes=256 * MIB,
    pids=64,
    scratch_bytes=16 * MIB,
    shm_bytes=8 * MIB,
    output_bytes=4 * MIB,
    output_files=16,
    file_bytes=3 * MIB,
    open_files=128,
    log_bytes=8192,
    setup_seconds=60,
)
LABELS = {"run": f"test-{secrets.token_hex(4)}"}
"""Of this run of the tests alone: another one beside it must not be reaped."""
CLASSES = {0: 10, 1: 200}
"""Class id -> brightness of its images."""


@dataclass
class Runtime:
    """A runtime and the names that the test learners have in it."""

    name: str
    sandbox: Sandbox
    acts: str
    rogue: str = ""
    labels: dict[str, str] = field(default_factory=lambda: dict(LABELS))

    @contextmanager
    def cell(self, act: str | None = None, amount: int = 0, image: str = "", **launch: Any) -> Iterator[Cell]:
        """A cell that is set up for an act."""
        with self.raw_cell(image, **launch) as cell:
            cell.call("describe", DescribeParams(), 30)
            cell.call("setup", setup(act, amount), 30)
            yield cell

    @contextmanager
    def raw_cell(self, image: str = "", **launch: Any) -> Iterator[Cell]:
        """A cell that has not been spoken to."""
        cell = self.sandbox.start(Launch(image or self.acts, labels=self.labels, **{"limits": LIMITS, **launch}))
        try:
            yield cell
        finally:
            cell.close()

    @contextmanager
    def rogue_cell(self, act: str) -> Iterator[Cell]:
        """A cell that breaks the protocol at the next request."""
        with self.cell(act, image=self.rogue) as cell:
            yield cell


def setup(act: str | None = None, amount: int = 0) -> SetupParams:
    return SetupParams(
        image=ImageShape(height=4, width=4), hyperparameters={"act": act, "amount": amount}, learner_seed=1
    )


def write_data(folder: Path) -> None:
    for label, brightness in CLASSES.items():
        np.save(folder / f"{label:05d}.npy", np.full((5, 4, 4, 3), brightness, np.uint8))


def learn(cell: Cell, seconds: float = 30, on_note: NoteHandler | None = None) -> dict[str, Any]:
    """Deliver one task and learn it."""
    cell.pause()
    with cell.delivery("data") as folder:
        write_data(folder)
    cell.resume()
    params = LearnParams(task=0, classes=list(CLASSES), data=cell.inside.data, out=cell.inside.out)
    return cell.call("learn", params, seconds, on_note)


def predict(cell: Cell, state: Path, seconds: float = 30) -> dict[str, Any]:
    """Deliver a state and three items, and predict them."""
    cell.pause()
    with cell.delivery("state") as folder:
        for file in state.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
    with cell.delivery("items") as folder:
        items = np.stack([np.full((4, 4, 3), value, np.uint8) for value in (199, 12, 180)])
        np.save(folder / "items.npy", items)
    cell.resume()
    inside = cell.inside
    params = PredictParams(
        items=f"{inside.items}/items.npy", count=3, classes=2, task=0, state=inside.state, out=inside.out
    )
    return cell.call("predict", params, seconds)
