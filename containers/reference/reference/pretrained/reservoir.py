"""A memory that keeps a uniform sample of a stream, within the exemplar budget of the trial."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from suite.protocol.messages import ExemplarBudget

DEFAULT_PER_CLASS = 20
"""Images per class where the track sets no bound."""


class Reservoir:
    """Reservoir sampling (Vitter, 1985): item n of a stream is kept with probability size / n.

    With a bound in total there is one reservoir; with a bound per class, or none at all, one per class.
    """

    def __init__(self, budget: ExemplarBudget) -> None:
        self._total = budget.total if budget.per_class is None else None
        self._per_class = DEFAULT_PER_CLASS if budget.per_class is None else budget.per_class
        self._bound = budget.total
        self._images: list[np.ndarray] = []
        self._labels: list[int] = []
        self._offered: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def open(self, classes: int) -> None:
        """Fit the bound per class to `classes` classes, where both bounds hold: surplus images leave, last first."""
        if self._total is not None or self._bound is None:
            return
        self._per_class = min(self._per_class, self._bound // classes)
        for label in set(self._labels):
            for place in reversed(self._places(label)[self._per_class :]):
                del self._images[place], self._labels[place]

    def offer(self, image: np.ndarray, label: int) -> None:
        """One item of the stream: uint8 [H, W, C] and its class."""
        key = -1 if self._total is not None else label
        size = self._total if self._total is not None else self._per_class
        places = list(range(len(self))) if self._total is not None else self._places(label)
        self._offered[key] = self._offered.get(key, 0) + 1
        if len(places) < size:
            self._images.append(np.array(image))
            self._labels.append(label)
            return
        chosen = int(torch.randint(self._offered[key], ()))
        if chosen < size:
            self._images[places[chosen]], self._labels[places[chosen]] = np.array(image), label

    def _places(self, label: int) -> list[int]:
        return [place for place, stored in enumerate(self._labels) if stored == label]

    def draw(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """At most `count` different items: images uint8 [n, H, W, C] and labels int64 [n]."""
        rows = torch.randperm(len(self))[:count].tolist()
        return np.stack([self._images[r] for r in rows]), np.array([self._labels[r] for r in rows], np.int64)

    def counts(self) -> dict[int, int]:
        """Stored images per class."""
        return {label: self._labels.count(label) for label in sorted(set(self._labels))}

    def state_dict(self) -> dict[str, Any]:
        """Everything, in order, with the numbers of items offered."""
        images = np.stack(self._images) if self._images else np.empty((0, 0, 0, 0), np.uint8)
        return {
            "images": images,
            "labels": np.array(self._labels, np.int64),
            "offered": dict(self._offered),
            "per_class": self._per_class,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        self._images = list(state["images"])
        self._labels = [int(label) for label in state["labels"]]
        self._offered = {int(key): count for key, count in state["offered"].items()}
        self._per_class = state["per_class"]
