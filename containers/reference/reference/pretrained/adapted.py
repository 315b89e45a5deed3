"""Tuning a frozen ViT to a task by few parameters and a temporary cosine classifier (APER, RanPAC, EASE)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from reference.pretrained.base import PretrainedLearner
from reference.pretrained.heads import CosinePart
from suite.sdk import Task


class AdaptedLearner(PretrainedLearner):
    """A learner whose representation is tuned, and whose classifier is then made of statistics."""

    def tune(self, task: Task, body: nn.Module, features: Callable[[Tensor], Tensor]) -> None:
        """Train `body` and a cosine classifier of the task on `features(pixels)`; then drop the classifier."""
        part = CosinePart(self.width, self.current).to(self.device)
        body.requires_grad_(True)
        self.fit(
            nn.ModuleList([body, part]),
            self.pool(task),
            lambda batch: part.loss(features(batch.images), batch.labels),
            self.recipe(),
        )
        body.requires_grad_(False)
