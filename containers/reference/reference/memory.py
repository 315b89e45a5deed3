"""Exemplar memory: images of seen classes in the order of their selection, within a budget."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from suite.protocol.messages import ExemplarBudget

Selection = Literal["herding", "random", "first"]
DEFAULT_PER_CLASS = 20
"""Exemplars per class where the track sets no bound (PODNet's and LUCIR's protocol)."""


def herding(features: np.ndarray, count: int) -> list[int]:
    """iCaRL, algorithm 4: indices of `count` rows of `features` [N, D] whose running mean follows the class mean.

    Item k is argmin over those left of ||mean - (sum of chosen + candidate) / k||. The mean is that of the given rows
    (L2-normalised by the caller), not normalised again.
    """
    x = np.asarray(features, np.float64)
    mean, squares = x.mean(0), (x * x).sum(1)
    chosen: list[int] = []
    total = np.zeros_like(mean)
    for k in range(1, min(count, len(x)) + 1):
        # ||k mean - total - x||^2, less what does not depend on x
        cost = squares - 2 * (x @ (k * mean - total))
        cost[chosen] = np.inf
        best = int(np.argmin(cost))
        chosen.append(best)
        total += x[best]
    return chosen


class ExemplarMemory:
    """Images uint8 [H, W, C] per class, first chosen first: to shrink a class is to cut its tail."""

    def __init__(self, budget: ExemplarBudget) -> None:
        self._budget = budget
        self._images: dict[int, np.ndarray] = {}

    def share(self, classes: int) -> float:
        """Total budget / classes, or the bound per class, if smaller."""
        bounds = []
        if self._budget.total is not None:
            bounds.append(self._budget.total / max(classes, 1))
        if self._budget.per_class is not None:
            bounds.append(float(self._budget.per_class))
        return min(bounds, default=float(DEFAULT_PER_CLASS))

    def quota(self, classes: int) -> int:
        """Images that each of `classes` classes may keep: the share, rounded down; the remainder is not used."""
        return int(self.share(classes))

    def reduce(self, quota: int) -> None:
        """Keep the first `quota` images of each class."""
        self._images = {c: images[:quota] for c, images in self._images.items() if quota > 0}

    def put(self, label: int, images: np.ndarray) -> None:
        """Store `images` [n, H, W, C], best first, as the exemplars of class `label`."""
        if len(images):
            self._images[label] = np.ascontiguousarray(images)
        else:
            self._images.pop(label, None)

    def of_class(self, label: int) -> np.ndarray | None:
        """The exemplars of a class [n, H, W, C], best first; None if it has none."""
        return self._images.get(label)

    @property
    def classes(self) -> list[int]:
        """Classes that have exemplars, ascending."""
        return sorted(self._images)

    def counts(self) -> dict[int, int]:
        """Stored images per class."""
        return {c: len(self._images[c]) for c in self.classes}

    def __len__(self) -> int:
        return sum(map(len, self._images.values()))

    def arrays(self, limit: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Images uint8 [N, H, W, C] and labels int64 [N], class by class; at most `limit` a class."""
        if not self._images:
            return np.empty((0, 0, 0, 0), np.uint8), np.empty(0, np.int64)
        images = np.concatenate([self._images[c][:limit] for c in self.classes])
        labels = np.repeat(np.asarray(self.classes, np.int64), [len(self._images[c][:limit]) for c in self.classes])
        return images, labels

    def state_dict(self) -> dict[str, Any]:
        """Images and labels, in order."""
        images, labels = self.arrays()
        return {"images": images, "labels": labels}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        labels = state["labels"]
        self._images = {int(c): state["images"][labels == c] for c in np.unique(labels)}


def joined(*parts: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of several (images, labels) one after the other; empty ones are left out."""
    filled = [part for part in parts if len(part[1])]
    if len(filled) == 1:
        return filled[0]
    return np.concatenate([images for images, _ in filled]), np.concatenate([labels for _, labels in filled])
