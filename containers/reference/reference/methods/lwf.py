"""LwF: Learning without Forgetting (Li and Hoiem, 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

from reference.engine import Batch
from reference.losses import cross_entropy_of, distillation
from reference.networks.incremental import Network, frozen
from reference.scratch import ScratchLearner
from reference.spaces import scratch_space
from suite.sdk import Choice, Task


class LwF(ScratchLearner):
    """Keep the old network's answers on the new images: CE on the new logits + lambda KD_T on the old ones.

    No exemplars. The classification term covers the task's own logits only, as in PyCIL; that choice is what makes LwF
    work without task labels. PyCIL's constants are T = 2, lambda = 3; table 4 has no LwF, so the grid is spread around
    them. Scores: linear head.
    """

    name = "LwF"
    description = "Distils the old network's outputs on the new data."
    space = scratch_space({"temperature": Choice([1, 1.5, 2, 2.5, 3]), "lambda_kd": Choice([1, 2, 3, 5, 10])})

    def learn(self, task: Task) -> None:
        teacher = None if task.is_first else frozen(self.network)
        old = self.enlarge(task.classes)
        classes = torch.tensor(sorted(task.classes), device=self.device)
        self.fit(
            self.pool((task.images, task.labels)),
            lambda batch: self.loss(batch, classes, old, teacher),
            self.recipe_for(task),
        )

    def loss(self, batch: Batch, classes: Tensor, old: int, teacher: Network | None) -> Tensor:
        """CE(z_new, y) + lambda KD_T(z_old, z'_old)."""
        z = self.network(batch.images)
        loss = cross_entropy_of(z, batch.labels, classes)
        if teacher is None:
            return loss
        kd = distillation(z[:, :old], teacher(batch.images), self.number("temperature"))
        return loss + self.number("lambda_kd") * kd
