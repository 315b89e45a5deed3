"""Learners that classify with a linear head on their own features and train task by task."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from reference.engine import Batch
from reference.pretrained.base import PretrainedLearner
from reference.pretrained.heads import Part, WithHead
from suite.sdk import Task


class HeadedLearner(PretrainedLearner):
    """Scores are `network.head(features)`; a task trains `network.body` and the head's rows of its own classes."""

    network: WithHead[Any]

    def fit_task(
        self,
        task: Task,
        body: nn.Module,
        loss_of: Callable[[Batch, Part], Tensor],
        before_step: Callable[[nn.Module], None] | None = None,
    ) -> None:
        """Train `body` and a part of the head on `loss_of(batch, part)`, then write the part back.

        `before_step` is given all that trains, between backward and step.
        """
        part = self.network.head.part(self.current)
        trained = nn.ModuleList([body, part])
        hook = partial(before_step, trained) if before_step else None
        self.fit(trained, self.pool(task), lambda batch: loss_of(batch, part), self.recipe(), before_step=hook)
        self.network.head.put(part)

    def scores(self, pixels: Tensor) -> Tensor:
        scores: Tensor = self.network.head(self.features(pixels))
        return scores

    def classifier(self) -> np.ndarray:
        """Weights float32 [D, C] of the head."""
        return np.asarray(self.network.head.weight.detach().T.cpu().numpy())
