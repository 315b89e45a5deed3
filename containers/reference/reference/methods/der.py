"""DER: Dynamically Expandable Representation (Yan et al., 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.classifiers import LinearHead, align
from reference.engine import Batch
from reference.networks.branched import BranchedNetwork
from reference.scratch import ScratchLearner
from reference.spaces import STRENGTH, scratch_space
from suite.sdk import Task


class DER(ScratchLearner):
    """A new backbone per task beside the frozen old ones; one classifier over all their features.

    Loss from the second task on: CE + lambda_aux CE_aux, where an auxiliary head on the newest features tells the new
    classes from each other and from "old". Afterwards the new classes' weights are aligned as in WA. As in PyCIL: no
    masks, no pruning ("DER without P", which no public code has), and alignment instead of the official code's balanced
    retraining of the classifier. Scores: linear head (option head = "nme").
    """

    name = "DER"
    description = "One frozen backbone per task, an auxiliary loss for the newest, aligned weights."
    space = scratch_space({"lambda_aux": STRENGTH}, head="linear")
    network: BranchedNetwork

    def build(self, classes: int) -> BranchedNetwork:
        return BranchedNetwork.whole(self.backbone(), classes)

    def learn(self, task: Task) -> None:
        old = self.enlarge(task.classes)
        auxiliary = LinearHead(self.network.dimension, self.seen - old + 1).to(self.device)
        parameters = [p for p in self.network.parameters() if p.requires_grad]
        if not task.is_first:
            parameters += auxiliary.parameters()
        self.fit(
            self.pool(self.with_memory(task)),
            lambda batch: self.loss(batch, old, None if task.is_first else auxiliary),
            self.recipe_for(task),
            parameters=parameters,
        )
        self.stage("post")
        align(self.network.head, old)
        self.remember(task)

    def loss(self, batch: Batch, old: int, auxiliary: nn.Module | None) -> Tensor:
        """L_h + lambda_aux L_a (equation 5, without the sparsity term)."""
        features = self.network.features(batch.images)
        loss = functional.cross_entropy(self.network.head(features), batch.labels)
        if auxiliary is None:
            return loss
        targets = torch.clamp(batch.labels - old + 1, min=0)  # 0: any old class
        aux = functional.cross_entropy(auxiliary(self.network.newest(features)), targets)
        return loss + self.number("lambda_aux") * aux
