"""What a method author writes: a `Learner`, and what it is given: `Context` and `Task`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, SupportsFloat

import numpy as np

from suite.protocol.messages import LearnResult, Manifest, Privilege, SetupParams, Stage
from suite.protocol.space import Space
from suite.protocol.state import split


class DivergedError(Exception):
    """Raise it when training has gone to NaN or infinity: the trial is recorded as `diverged`, not as crashed."""


@dataclass(frozen=True)
class Task:
    """The data of one task.

    images: uint8 [N, H, W, C], classes one after the other; labels: int64 [N], ids in order of arrival in the trial.
    """

    index: int
    classes: list[int]
    images: np.ndarray
    labels: np.ndarray
    past_images: np.ndarray | None = None
    """Images of earlier tasks' classes; only with the privilege `past_data`."""
    past_labels: np.ndarray | None = None
    seconds_left: float | None = None
    """Wall-clock seconds left for this call, None without a limit."""

    @property
    def is_first(self) -> bool:
        """Whether nothing was learned before."""
        return self.index == 0


@dataclass(frozen=True)
class Context:
    """What a learner knows before its first data; the same in every container of a trial."""

    setup: SetupParams
    notify: Callable[[str, dict[str, Any]], None] = field(repr=False, default=lambda _method, _params: None)
    scratch: Path = Path("/tmp")  # noqa: S108  (in a container, the only writable place beside the output)

    @property
    def hyperparameters(self) -> Mapping[str, Any]:
        """The point drawn from the learner's space (or given by the user)."""
        return self.setup.hyperparameters


class Learner(ABC):
    """A continual learner. Only `learn`, `predict`, `state_dict` and `load_state_dict` must be written.

    Each task is learned in a new process: `load_state_dict` with what `state_dict` gave after the previous task (not
    called before the first), then `learn`, then `state_dict`. Whatever is not in the state is gone. Prediction happens
    in yet another process that has only the state. Before each call the random generators of Python, numpy and PyTorch
    are reseeded from the trial's seed, the task and the call.
    """

    name: ClassVar[str] = ""
    """Shown on the leaderboard; the class name if empty."""
    version: ClassVar[str] = "1"
    description: ClassVar[str] = ""
    space: ClassVar[Space] = Space()
    privileges: ClassVar[tuple[Privilege, ...]] = ()

    def __init__(self, context: Context) -> None:
        self.context = context

    def setup(self) -> None:  # noqa: B027  (optional on purpose)
        """Prepare what needs no data and no state (weights, compilation); runs outside training time. Optional."""

    @abstractmethod
    def learn(self, task: Task) -> None:
        """Learn `task`; it will not be seen again."""

    @abstractmethod
    def predict(self, images: np.ndarray) -> np.ndarray:
        """Scores [N, classes seen] for images uint8 [N, H, W, C]; the highest score of a row is the prediction."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """All that must survive: dicts, lists and tuples of arrays, tensors, numbers, strings, booleans, None."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Become the learner that gave `state`."""

    def report(self) -> LearnResult:
        """Parameters stored and trainable, stored images per class, metrics for display. Override to be exact.

        The default calls every floating-point number of the state a stored and trainable parameter.
        """
        parts = split(self.state_dict())
        count = sum(a.size for a in parts.arrays.values() if a.dtype.kind == "f")
        count += sum(t.numel() for t in parts.tensors.values() if t.is_floating_point())
        return LearnResult(stored_parameters=count, trainable_parameters=count)

    def progress(
        self, epoch: int | None = None, epochs: int | None = None, note: str = "", **metrics: SupportsFloat
    ) -> None:
        """Tell the user how far `learn` is; call it as often as you like. Metrics that are not finite are dropped."""
        finite = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
        params = {"epoch": epoch, "epochs": epochs, "note": note[:200], "metrics": finite}
        self.context.notify("progress", {k: v for k, v in params.items() if v is not None})

    def stage(self, stage: Stage) -> None:
        """Mark that `learn` enters its `train` or `post` (post-training) stage; it starts in `train`."""
        self.context.notify("stage", {"stage": stage})

    @classmethod
    def manifest(cls) -> Manifest:
        """The answer to `describe`."""
        return Manifest(
            name=cls.name or cls.__name__,
            version=cls.version,
            description=cls.description,
            space=cls.space,
            privileges=list(cls.privileges),
            embeds=callable(getattr(cls, "embed", None)),
            has_classifier=callable(getattr(cls, "classifier", None)),
        )


# A learner that can show its representation also has `embed(images) -> float32 [N, D]` and
# `classifier() -> float32 [D, classes seen]`; whether it does is seen from the class.
