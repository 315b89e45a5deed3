"""MAS: Memory Aware Synapses (Aljundi et al., 2018)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from reference.classifiers import TaskHeads
from reference.engine import Batch
from reference.losses import cross_entropy_of
from reference.networks.incremental import IncrementalNetwork
from reference.scratch import ScratchLearner
from reference.spaces import scratch_space
from suite.sdk import Choice, Task

GRID = {"lambda_mas": Choice([1, 10, 50, 100, 400])}


class MAS(ScratchLearner):
    """Parameters that move the output much are held near their old values: + lambda/2 sum Omega (theta - theta*)^2.

    As in FACIL: Omega is the mean over images of |gradient of the batch's mean ||z||_2|, taken in training mode over
    the task's data, merged as alpha Omega + (1 - alpha) Omega_t with alpha = 0.5; the classifier is not held. Without
    exemplars the classification term covers the task's own logits and old heads are out of the optimiser. FACIL's
    lambda is 1, its search reaches 400. (The original takes the squared norm and adds importances up, so strengths do
    not carry over between code bases.) Scores: linear heads, concatenated.
    """

    name = "MAS"
    description = "Importance-weighted anchoring of parameters, without exemplars."
    space = scratch_space(GRID, alpha=0.5)
    carried = ("memory", "means", "importance", "anchor")
    network: IncrementalNetwork[TaskHeads]

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.importance: Tensor | None = None
        """Omega of every backbone parameter, flat."""
        self.anchor: Tensor | None = None
        """theta*, the backbone's parameters after the previous task, flat."""

    def build(self, classes: int) -> IncrementalNetwork[TaskHeads]:
        backbone = self.backbone()
        return IncrementalNetwork(backbone, TaskHeads(backbone.dimension, classes))

    def learn(self, task: Task) -> None:
        self.enlarge(task.classes)
        self.freeze_heads()
        classes = self.trained_classes(task)
        anchor, importance = self.on_device(self.anchor), self.on_device(self.importance)
        self.fit(
            self.pool(self.training_data(task)),
            lambda batch: self.loss(batch, classes, anchor, importance),
            self.recipe_for(task),
        )
        self.stage("post")
        fresh = self.estimate_importance(task)
        share = self.number("alpha")
        self.importance = fresh if importance is None else share * importance + (1 - share) * fresh
        self.anchor = self.flat().detach().clone()
        self.keep(task)

    def loss(self, batch: Batch, classes: Tensor | None, anchor: Tensor | None, importance: Tensor | None) -> Tensor:
        """CE + lambda/2 sum Omega (theta - theta*)^2."""
        z = self.network(batch.images)
        if classes is None:
            loss = functional.cross_entropy(z, batch.labels)
        else:
            loss = cross_entropy_of(z, batch.labels, classes)
        if anchor is None or importance is None:
            return loss
        return loss + self.number("lambda_mas") / 2 * (importance * (self.flat() - anchor).square()).sum()

    def estimate_importance(self, task: Task) -> Tensor:
        """Omega_t: sum over batches of |grad of mean ||z||_2| times batch size, divided by the number of images."""
        parameters = list(self.network.backbone.parameters())
        pool = self.pool((task.images, task.labels))
        total = torch.zeros_like(self.flat())
        self.network.train()
        for batch in pool.epoch():
            length = self.network(batch.images).norm(dim=1).mean()
            gradients = torch.autograd.grad(length, parameters)
            total += torch.cat([g.reshape(-1) for g in gradients]).abs() * len(batch.labels)
        return total / len(pool)

    def flat(self) -> Tensor:
        """All backbone parameters as one vector."""
        return torch.cat([p.reshape(-1) for p in self.network.backbone.parameters()])

    def on_device(self, value: Tensor | None) -> Tensor | None:
        """What a state brought, on the learner's device."""
        return None if value is None else value.to(self.device)

    # --- what exemplars change ----------------------------------------------------------------------------------------

    def freeze_heads(self) -> None:
        """Old heads do not train."""
        self.network.head.freeze_old()

    def trained_classes(self, task: Task) -> Tensor | None:
        """Columns of the classification term; None for all."""
        return torch.tensor(sorted(task.classes), device=self.device)

    def training_data(self, task: Task) -> Any:
        """The images trained on."""
        return task.images, task.labels

    def keep(self, task: Task) -> None:
        """What is remembered of the task beyond parameters: nothing."""
