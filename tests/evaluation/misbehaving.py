"""One well-behaved learner, and learners that each do one thing wrong."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np

from suite.protocol import LearnResult
from suite.sdk import Choice, DivergedError, Learner, Space, Task


class Good(Learner):
    """Nearest class mean over pixels shrunk by `stride`; draws differ in it."""

    space = Space(stride=Choice([2, 8]))

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.means: dict[int, np.ndarray] = {}

    def _shrink(self, images: np.ndarray) -> np.ndarray:
        stride = self.context.hyperparameters["stride"]
        return images[:, ::stride, ::stride].reshape(len(images), -1) / np.float32(255)

    def learn(self, task: Task) -> None:
        pixels = self._shrink(task.images)
        for c in task.classes:
            noise = np.random.default_rng(random.getrandbits(32)).normal(0, 0.01, pixels.shape[1])
            self.means[c] = (pixels[task.labels == c].mean(axis=0) + noise).astype(np.float32)
        self.progress(1, 1)
        self.stage("post")

    def predict(self, images: np.ndarray) -> np.ndarray:
        means = np.stack([self.means[c] for c in sorted(self.means)])
        return np.stack([-((pixels - means) ** 2).sum(axis=1) for pixels in self._shrink(images)])

    def state_dict(self) -> dict[str, Any]:
        return {"means": self.means}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.means = state["means"]


class Diverges(Good):
    def learn(self, task: Task) -> None:
        if task.index == 1:
            raise DivergedError("the loss is nan")
        super().learn(task)


class DivergesAtStride2(Good):
    def learn(self, task: Task) -> None:
        if self.context.hyperparameters["stride"] == 2:
            raise DivergedError("the loss is nan")
        super().learn(task)


class Crashes(Good):
    def learn(self, task: Task) -> None:
        raise ZeroDivisionError("oops")


class Slow(Good):
    def learn(self, task: Task) -> None:
        time.sleep(0.3)
        super().learn(task)


class Nan(Good):
    def predict(self, images: np.ndarray) -> np.ndarray:
        return super().predict(images) * np.nan


class WrongShape(Good):
    def predict(self, images: np.ndarray) -> np.ndarray:
        return super().predict(images)[:, :-1]


class Balances(Good):
    """Uses the company: shifts every score by the mean over the request."""

    def predict(self, images: np.ndarray) -> np.ndarray:
        scores = super().predict(images)
        order = scores[:, 0].argsort().argsort()
        favoured: np.ndarray = np.eye(scores.shape[1])[order * scores.shape[1] // len(order)]
        return np.asarray(scores + 100 * favoured)


class Hoards(Good):
    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "hoard": np.zeros(8 << 20, np.uint8)}


class Undeclared(Good):
    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "secret": object()}


class Remembers(Good):
    """Sees past data by privilege; reports what it was given."""

    privileges = ("past_data",)

    def learn(self, task: Task) -> None:
        self.past = 0 if task.past_labels is None else len(set(task.past_labels.tolist()))
        super().learn(task)

    def report(self) -> LearnResult:
        return LearnResult(metrics={"past": float(self.past)})


class LiesAboutExemplars(Good):
    def report(self) -> LearnResult:
        return LearnResult(exemplars={99: 5})


LEARNERS: dict[str, type[Learner]] = {
    c.__name__: c
    for c in (
        Good,
        Diverges,
        DivergesAtStride2,
        Crashes,
        Slow,
        Nan,
        WrongShape,
        Balances,
        Hoards,
        Undeclared,
        Remembers,
        LiesAboutExemplars,
    )
}
