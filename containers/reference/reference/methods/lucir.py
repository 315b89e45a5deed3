"""LUCIR: Learning a Unified Classifier Incrementally via Rebalancing (Hou et al., 2019)."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from reference.classifiers import CosineHead
from reference.engine import Batch
from reference.losses import direction
from reference.networks.incremental import IncrementalNetwork, Network, frozen
from reference.scratch import ScratchLearner
from reference.spaces import scratch_space
from suite.sdk import Choice, Task


class LUCIR(ScratchLearner):
    """Cosine classifier, features held in direction, and a margin between old classes and their strongest new rivals.

    Loss from the second task on: CE(sigma cos) + lambda (1 - cos(f, f')) + margin ranking, with
    lambda = lambda_base sqrt(C_old / C_new) (equation 7). Old class weights are frozen; new ones start at the mean of
    the class's normalised features, at the mean norm of the old weights (imprinting). The backbone ends without ReLU.
    Official constants for CIFAR: lambda_base 5, K = 2 rivals, margin 0.5; table 4 has no LUCIR, so lambda_base and the
    margin are spread around them. No balanced fine-tuning, as in the official CIFAR script. Scores: cosine head (option
    head = "nme").
    """

    name = "LUCIR"
    description = "Cosine classifier, less-forget constraint and inter-class margin."
    space = scratch_space(
        {"lambda_base": Choice([1, 3, 5, 7, 10]), "margin": Choice([0.3, 0.5, 0.7])}, rivals=2, head="linear"
    )
    last_relu = False
    network: IncrementalNetwork[CosineHead]

    def build(self, classes: int) -> IncrementalNetwork[CosineHead]:
        backbone = self.backbone()
        return IncrementalNetwork(backbone, CosineHead(backbone.dimension, classes))

    def learn(self, task: Task) -> None:
        teacher = None if task.is_first else frozen(self.network)
        old = self.enlarge(task.classes)
        if teacher is not None:
            self.network.head.freeze_old()
            self.imprint(task, old)
        self.fit(self.pool(self.with_memory(task)), lambda batch: self.loss(batch, old, teacher), self.recipe_for(task))
        self.stage("post")
        self.remember(task)

    def loss(self, batch: Batch, old: int, teacher: Network | None) -> Tensor:
        """L_ce + lambda L_dis + L_mr (equation 9)."""
        f = self.network.features(batch.images)
        cosines = self.network.head.cosines(f)
        loss = functional.cross_entropy(self.network.head.scale * cosines, batch.labels)
        if teacher is None or old == self.seen:
            return loss
        strength = self.number("lambda_base") * math.sqrt(old / (self.seen - old))
        less_forget = direction(f, teacher.features(batch.images))
        return loss + strength * less_forget + self.margin_ranking(cosines, batch.labels, old)

    def margin_ranking(self, cosines: Tensor, labels: Tensor, old: int) -> Tensor:
        """Mean over old classes' samples and their K strongest new classes of [m - cos_y + cos_k]_+ (equation 8)."""
        is_old = (labels < old).float()
        rivals = cosines[:, old:].topk(min(self.option("rivals"), cosines.shape[1] - old), 1).values
        own = cosines.gather(1, labels.unsqueeze(1))
        violations = functional.relu(self.number("margin") - own + rivals).mean(1)
        return (violations * is_old).sum() / is_old.sum().clamp(min=1)

    def imprint(self, task: Task, old: int) -> None:
        """Set the new classes' weights from the data, with the old network's features."""
        newest = self.network.head.newest()
        scale = self.network.head.mean_norm(before=old)
        with torch.no_grad():
            for label in range(old, self.seen):
                mean = torch.from_numpy(np.asarray(self.normalised(task.images[task.labels == label]).mean(0)))
                newest[label - old] = functional.normalize(mean.to(newest), dim=0) * scale
