"""`suite check`: one pack of checks that every learner must pass, whatever it is written in (DESIGN 5)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from suite.errors import LearnerError, SuiteError
from suite.evaluation.answers import checked
from suite.evaluation.folders import copy_folder, fresh
from suite.evaluation.sandboxes import sandbox_name
from suite.evaluation.scoring import read_predictions
from suite.protocol import (
    Backbone,
    Code,
    DescribeParams,
    ExemplarBudget,
    FirstTask,
    ImageShape,
    LearnParams,
    LearnResult,
    Manifest,
    Method,
    PredictParams,
    PredictResult,
    SetupParams,
    SetupResult,
    read_array,
    summarise_state,
)
from suite.sandbox import Cell, Identity, Launch, Limits, Sandbox, open_sandbox
from suite.seeds import Counter

SIDE = 32
PER_CLASS = 12
TASKS = ((0, 1), (2, 3))
SECONDS = 300.0
SEED = 1


@dataclass(frozen=True)
class Finding:
    """The outcome of one check."""

    check: str
    ok: bool
    message: str = ""


def is_class_target(target: str) -> bool:
    """Whether a target names a Python class (`module:Class`, `file.py:Class`) rather than an image."""
    where, _, name = target.partition(":")
    return where.endswith(".py") or (name.isidentifier() and name[:1].isupper())


def check_learner(target: str, sandbox: str, backbone: str | None = None) -> list[Finding]:
    """All findings, in order; after a check that the later ones rest on fails, those are left out."""
    with open_sandbox(sandbox_name(sandbox)) as opened, tempfile.TemporaryDirectory() as folder:
        return list(_Pack(opened, opened.identify(target), Path(folder), backbone).findings())


class _CheckFailedError(Exception):
    """A check did not hold; the message says what was seen."""


class _Pack:
    """The checks, over states and predictions that they hand on to each other."""

    def __init__(self, sandbox: Sandbox, identity: Identity, folder: Path, backbone: str | None) -> None:
        self.sandbox = sandbox
        self.identity = identity
        self.folder = folder
        self.backbone, self.weights = _mounted(backbone)
        self.point = identity.manifest.space.draw(Counter(SEED).unit)

    def findings(self) -> Iterator[Finding]:
        """Run the checks one after the other."""
        checks: list[tuple[str, Callable[[], None]]] = [
            ("manifest equals describe", self.manifest),
            ("learns two tasks", self.learns),
            ("predicts all classes seen", self.predicts),
            ("state holds only what is declared", self.declared),
            ("state round trip gives identical scores", self.round_trip),
            ("same seed, same scores", self.deterministic),
            ("predicts each item by itself", self.per_item),
            ("wrong shapes are refused", self.wrong_shape),
            ("unknown methods are refused", self.unknown_method),
        ]
        for name, check in checks:
            try:
                check()
            except (SuiteError, _CheckFailedError) as error:
                tail = error.log_tail if isinstance(error, LearnerError) else ""
                yield Finding(name, ok=False, message=f"{error}" + (f"\n{tail}" if tail else ""))
                if check in (self.manifest, self.learns, self.predicts):
                    return
            else:
                yield Finding(name, ok=True)

    # --- the checks ---------------------------------------------------------------------------------------------------

    def manifest(self) -> None:
        with closing(self._start()) as cell:
            told = checked(cell.call("describe", DescribeParams(), SECONDS), Manifest)
        _require(told == self.identity.manifest, "`describe` answers something else than the image's label says")

    def learns(self) -> None:
        self._learn(0, None, "first")
        self._learn(1, "first", "second")

    def predicts(self) -> None:
        items = _items(range(4))
        self.scores = self._predict("second", items, 4)

    def declared(self) -> None:
        for name in ("first", "second"):
            summarise_state(self.folder / name)

    def round_trip(self) -> None:
        again = self._predict("second", _items(range(4)), 4)
        _require(np.array_equal(again, self.scores), "two predictions from one state differ")

    def deterministic(self) -> None:
        self._learn(0, None, "again-first")
        self._learn(1, "again-first", "again-second")
        again = self._predict("again-second", _items(range(4)), 4)
        _require(np.array_equal(again, self.scores), "learning again from the same seed gives other scores")

    def per_item(self) -> None:
        items = _items(range(4))
        chosen = np.array([i for i in range(len(items)) if i % 5 in (0, 3)])[::-1]
        alone = self._predict("second", items[chosen], 4)
        same = np.mean(alone.argmax(axis=1) == self.scores[chosen].argmax(axis=1))
        _require(same >= 0.99, f"only {same:.0%} of the items are predicted alike in other company")

    def wrong_shape(self) -> None:
        try:
            self._predict("second", _items(range(4)), 5)
        except SuiteError:
            return
        raise _CheckFailedError("asked for one class too many, the learner did not refuse")

    def unknown_method(self) -> None:
        with self._ready() as cell:
            try:
                cell.call(cast("Method", "levitate"), DescribeParams(), SECONDS)
            except LearnerError as error:
                _require(error.rpc_code == Code.METHOD_NOT_FOUND, f"answered with {error}")
            else:
                raise _CheckFailedError("an unknown method was answered with a result")
            checked(cell.call("describe", DescribeParams(), SECONDS), Manifest)

    # --- what they are made of ----------------------------------------------------------------------------------------

    def _start(self) -> Cell:
        return self.sandbox.start(Launch(self.identity.image, Limits(setup_seconds=SECONDS), weights=self.weights))

    @contextmanager
    def _ready(self) -> Iterator[Cell]:
        with closing(self._start()) as cell:
            cell.call("describe", DescribeParams(), SECONDS)
            checked(cell.call("setup", self._setup(cell), SECONDS), SetupResult)
            yield cell

    def _setup(self, cell: Cell) -> SetupParams:
        return SetupParams(
            image=ImageShape(height=SIDE, width=SIDE),
            hyperparameters=self.point,
            learner_seed=SEED,
            exemplars=ExemplarBudget(total=16),
            first_task=FirstTask(epochs=1, lr=0.05, milestones=[], lr_decay=0.1, weight_decay=0.0),
            backbone=Backbone(name=self.backbone, path=f"{cell.inside.weights}/{self.backbone}.safetensors")
            if self.backbone
            else None,
        )

    def _learn(self, task: int, before: str | None, name: str) -> None:
        past = [c for t in TASKS[:task] for c in t] if "past_data" in self.identity.manifest.privileges else []
        with self._ready() as cell:
            with cell.delivery("data") as folder:
                for c in (*TASKS[task], *past):
                    np.save(folder / f"{c:05d}.npy", _images(c))
            if before is not None:
                with cell.delivery("state") as folder:
                    copy_folder(self.folder / before, folder)
            params = LearnParams(
                task=task,
                classes=list(TASKS[task]),
                past_classes=past,
                data=cell.inside.data,
                state=cell.inside.state if before is not None else None,
                out=cell.inside.out,
                seconds_left=SECONDS,
            )
            checked(cell.call("learn", params, SECONDS), LearnResult)
            cell.collect(fresh(self.folder / name))

    def _predict(self, state: str, items: NDArray[np.uint8], classes: int) -> NDArray[np.float32]:
        with self._ready() as cell:
            with cell.delivery("items") as folder:
                np.save(folder / "items.npy", items)
            with cell.delivery("state") as folder:
                copy_folder(self.folder / state, folder)
            params = PredictParams(
                items=f"{cell.inside.items}/items.npy",
                count=len(items),
                classes=classes,
                task=1,
                state=cell.inside.state,
                out=cell.inside.out,
                seconds_left=SECONDS,
            )
            checked(cell.call("predict", params, SECONDS), PredictResult)
            out = fresh(self.folder / "scores")
            cell.collect(out)
        read_predictions(out / "scores.npy", len(items), classes)
        scores: NDArray[np.float32] = read_array(out / "scores.npy", (len(items), classes))
        return scores


def _mounted(backbone: str | None) -> tuple[str | None, Path | None]:
    """Name and folder of pretrained weights."""
    if backbone is None:
        return None, None
    from suite.weights import weights_folder

    return backbone, weights_folder(backbone)


def _require(holds: bool | np.bool_, otherwise: str) -> None:
    if not holds:
        raise _CheckFailedError(otherwise)


def _images(class_id: int, count: int = PER_CLASS) -> NDArray[np.uint8]:
    """Blobs in one of four corners and colours: easy to tell apart."""
    rng = np.random.default_rng(class_id)
    images = rng.integers(0, 60, (count, SIDE, SIDE, 3), dtype=np.uint8)
    row, column = divmod(class_id, 2)
    images[:, row * 16 : row * 16 + 16, column * 16 : column * 16 + 16, class_id % 3] += 180
    return images


def _items(classes: range) -> NDArray[np.uint8]:
    return np.concatenate([_images(c, 10) for c in classes])
