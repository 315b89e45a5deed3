"""iCaRL: Incremental Classifier and Representation Learning (Rebuffi et al., 2017)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from reference.engine import Batch
from reference.losses import distillation
from reference.networks.incremental import Network, frozen
from reference.scratch import ScratchLearner
from reference.spaces import STRENGTH, TEMPERATURE, scratch_space
from suite.sdk import Task


class ICaRL(ScratchLearner):
    """Replay with distillation; classes are told apart by the nearest mean of their exemplars.

    PyCIL's softmax form, which the papers' tables were made with: the original has sigmoid outputs, and averages the
    features of an image and its mirror image. Scores: nearest mean of exemplars (option head = "linear": the
    classifier).
    """

    name = "iCaRL"
    description = "Replay, distillation and the nearest mean of exemplars."
    space = scratch_space({"temperature": TEMPERATURE, "lambda_aux": STRENGTH}, head="nme")

    def learn(self, task: Task) -> None:
        teacher = None if task.is_first else frozen(self.network)
        old = self.enlarge(task.classes)
        self.fit(self.pool(self.with_memory(task)), lambda batch: self.loss(batch, old, teacher), self.recipe_for(task))
        self.stage("post")
        self.remember(task)

    def loss(self, batch: Batch, old: int, teacher: Network | None) -> Tensor:
        """CE(z, y) + lambda_aux KD_T(z_old, z'_old)."""
        z = self.network(batch.images)
        loss = functional.cross_entropy(z, batch.labels)
        if teacher is None:
            return loss
        kd = distillation(z[:, :old], teacher(batch.images), self.number("temperature"))
        return loss + self.number("lambda_aux") * kd
