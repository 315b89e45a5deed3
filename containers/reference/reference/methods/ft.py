"""Fine-tuning: what happens when nothing is done against forgetting."""

from __future__ import annotations

import torch
from torch import Tensor

from reference.engine import Batch
from reference.losses import cross_entropy_of
from reference.scratch import ScratchLearner
from reference.spaces import scratch_space
from suite.sdk import Task


class FineTuning(ScratchLearner):
    """Train on the new task alone, with cross-entropy over the task's own logits (as PyCIL's Finetune does).

    No exemplars. Over all logits the old classes would be pushed down by every batch; over the task's own they only
    lose their features. Scores: linear head over all classes.
    """

    name = "FT"
    description = "Fine-tuning without exemplars."
    space = scratch_space()

    def learn(self, task: Task) -> None:
        self.enlarge(task.classes)
        classes = torch.tensor(sorted(task.classes), device=self.device)
        self.fit(self.pool((task.images, task.labels)), lambda batch: self.loss(batch, classes), self.recipe_for(task))

    def loss(self, batch: Batch, classes: Tensor) -> Tensor:
        """CE(z restricted to the task's classes, y)."""
        return cross_entropy_of(self.network(batch.images), batch.labels, classes)
