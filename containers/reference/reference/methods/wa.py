"""WA: Maintaining Discrimination and Fairness by weight aligning (Zhao et al., 2020)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from reference.classifiers import LinearHead, align
from reference.engine import Batch
from reference.losses import distillation
from reference.networks.incremental import IncrementalNetwork, Network, frozen
from reference.scratch import ScratchLearner
from reference.spaces import STRENGTH, TEMPERATURE, scratch_space
from suite.sdk import Task


class WA(ScratchLearner):
    """Replay with distillation, then the new classes' weights are scaled to the norm of the old ones'.

    lambda_kd = 0 means the paper's adaptive rule (1 - lambda_t) CE + lambda_t KD with lambda_t = C_old / C; else
    CE + lambda_kd KD. The aligned network chooses the exemplars and is the next teacher. As in PyCIL, weights are not
    clipped to be positive. Scores: linear head (option head = "nme").
    """

    name = "WA"
    description = "Distillation, then alignment of the new classes' weight norms."
    space = scratch_space({"temperature": TEMPERATURE, "lambda_kd": STRENGTH}, head="linear")

    network: IncrementalNetwork[LinearHead]

    def learn(self, task: Task) -> None:
        teacher = None if task.is_first else frozen(self.network)
        old = self.enlarge(task.classes)
        self.fit(self.pool(self.with_memory(task)), lambda batch: self.loss(batch, old, teacher), self.recipe_for(task))
        self.stage("post")
        align(self.network.head, old)
        self.remember(task)

    def loss(self, batch: Batch, old: int, teacher: Network | None) -> Tensor:
        """CE(z, y) and KD_T(z_old, z'_old), weighted as the class says."""
        z = self.network(batch.images)
        loss = functional.cross_entropy(z, batch.labels)
        if teacher is None:
            return loss
        kd = distillation(z[:, :old], teacher(batch.images), self.number("temperature"))
        if self.number("lambda_kd"):
            return loss + self.number("lambda_kd") * kd
        share = old / self.seen
        return (1 - share) * loss + share * kd
