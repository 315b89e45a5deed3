"""FOSTER: Feature Boosting and Compression for Class-Incremental Learning (Wang et al., 2022)."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from reference.classifiers import LinearHead
from reference.engine import Batch, Pool
from reference.losses import distillation
from reference.networks.incremental import IncrementalNetwork, Network, frozen
from reference.schedules import Recipe
from reference.scratch import ScratchLearner
from reference.spaces import STRENGTH, TEMPERATURE, scratch_space
from suite.sdk import Choice, Task


class BoostedNetwork(Network):
    """The frozen old network and a new backbone that fits what the old one leaves over; a head over both."""

    def __init__(self, old: IncrementalNetwork[LinearHead], classes: int) -> None:
        super().__init__()
        self.old = frozen(old)
        self.new = copy.deepcopy(old.backbone).requires_grad_(True)
        self.head: LinearHead = copy.deepcopy(old.head)
        self.head.grow(classes, 2 * old.backbone.dimension)

    def features(self, x: Tensor) -> Tensor:
        """Old and new features [B, 2 D]."""
        return torch.cat([self.old.backbone(x), self.new(x)], 1)

    def train(self, mode: bool = True) -> BoostedNetwork:
        super().train(mode)
        self.old.eval()
        return self


class FOSTER(ScratchLearner):
    """Boost with a second backbone, then compress both into one.

    Boosting: CE(z / w_beta1) + lambda_fe CE(head on the new features) + lambda_kd KD_T(z_old, z'_old), where w_beta are
    effective-number class weights. Compression: the student, a copy of the old network with a grown head, learns
    the two-branch network's softened outputs, reweighted by w_beta2, for post_ft_epochs without weight decay. The next
    task starts from the student.

    Scores come from the two-branch network, as in PyCIL, which the papers' tables were made with; so it is carried
    until the next task, beside the student. Option model = "student" carries and scores with the single compressed
    backbone, which is what the method is meant to deploy. Class counts in w are those of the training data (PyCIL has
    500 fixed for CIFAR). The official CIFAR results use AutoAugment and Cutout; these do not.
    """

    name = "FOSTER"
    description = "Feature boosting with a second backbone, then compression into one."
    space = scratch_space(
        {
            "temperature": TEMPERATURE,
            "lambda_kd": STRENGTH,
            "lambda_fe": STRENGTH,
            "beta1": Choice([0.93, 0.95, 0.97, 0.99]),
            "beta2": Choice([0.93, 0.95, 0.97, 0.99]),
            "post_ft_epochs": Choice([30, 70, 120, 160, 200]),
        },
        model="teacher",
    )
    carried = ("memory", "boosted")
    network: IncrementalNetwork[LinearHead]

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.boosted: BoostedNetwork | None = None
        """The two-branch network of the last task; None after the first."""

    def grow(self, seen: int) -> None:
        self.boosted = BoostedNetwork(self.network, seen) if self.seen else None
        super().grow(seen)

    def learn(self, task: Task) -> None:
        old = self.enlarge(task.classes)
        pool, recipe = self.pool(self.with_memory(task)), self.recipe_for(task)
        if task.is_first:
            self.fit(pool, self.first_loss, recipe)
            self.remember(task)
            return
        if old == self.seen or self.boosted is None:  # all classes are known already
            self.boosted = BoostedNetwork(self.network, self.seen)
        counts = torch.bincount(pool.labels, minlength=self.seen)
        self.boost(self.boosted, pool, recipe, counts)
        self.stage("post")
        self.compress(self.boosted, pool, recipe, counts)
        self.remember(task)
        if self.option("model") == "student":
            self.boosted = None

    def first_loss(self, batch: Batch) -> Tensor:
        """CE(z, y)."""
        return functional.cross_entropy(self.network(batch.images), batch.labels)

    def boost(self, boosted: BoostedNetwork, pool: Pool, recipe: Recipe, counts: Tensor) -> None:
        """Train the new backbone, the joint head and an auxiliary head on the new features alone."""
        extra = LinearHead(self.network.backbone.dimension, self.seen).to(self.device)
        weights = effective_weights(counts, self.number("beta1"))
        parameters = [p for p in boosted.parameters() if p.requires_grad] + list(extra.parameters())

        def loss(batch: Batch) -> Tensor:
            return self.boosting_loss(boosted, extra, batch, weights)

        self.fit(pool, loss, recipe, parameters=parameters, network=boosted, note="boosting")

    def boosting_loss(self, boosted: BoostedNetwork, extra: LinearHead, batch: Batch, weights: Tensor) -> Tensor:
        """L_LA + lambda_fe L_FE + lambda_kd L_KD (equation 9)."""
        with torch.no_grad():
            old_features = boosted.old.backbone(batch.images)
            old_logits = boosted.old.head(old_features)
        features = boosted.new(batch.images)
        z = boosted.head(torch.cat([old_features, features], 1))
        aligned = functional.cross_entropy(z / weights, batch.labels)
        enhanced = functional.cross_entropy(extra(features), batch.labels)
        kd = distillation(z[:, : old_logits.shape[1]], old_logits, self.number("temperature"))
        return aligned + self.number("lambda_fe") * enhanced + self.number("lambda_kd") * kd

    def compress(self, boosted: BoostedNetwork, pool: Pool, recipe: Recipe, counts: Tensor) -> None:
        """Train the student (`self.network`, the old one with a grown head) to answer as the two branches do."""
        teacher = boosted.eval()
        weights = effective_weights(counts, self.number("beta2"))
        recipe = replace(recipe.rescaled(epochs=self.option("post_ft_epochs"), kind="cosine"), weight_decay=0.0)

        def loss(batch: Batch) -> Tensor:
            with torch.no_grad():
                answers = teacher(batch.images)
            return balanced_distillation(self.network(batch.images), answers, weights, self.number("temperature"))

        self.fit(pool, loss, recipe, note="compression")

    @property
    def scoring(self) -> Network:
        """The two-branch network where it is kept, else the student."""
        return self.network if self.boosted is None else self.boosted


def effective_weights(counts: Tensor, beta: float) -> Tensor:
    """w_c = (1 - beta) / (1 - beta^n_c) (the inverse effective number of images), scaled to sum to the classes."""
    weights = (1 - beta) / (1 - torch.pow(beta, counts.clamp(min=1).float()))
    return weights * (len(weights) / weights.sum())


def balanced_distillation(z: Tensor, teacher: Tensor, weights: Tensor, temperature: float) -> Tensor:
    """BKD (equation 12): the teacher's softened distribution times w, renormalised, against the student's."""
    target = functional.softmax(teacher / temperature, 1) * weights
    target = target / target.sum(1, keepdim=True)
    return -(target * functional.log_softmax(z / temperature, 1)).sum(1).mean()
