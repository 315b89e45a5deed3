"""PODNet: Pooled Outputs Distillation for Small-Tasks Incremental Learning (Douillard et al., 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from reference.classifiers import CosineHead
from reference.clustering import kmeans
from reference.engine import Batch
from reference.losses import direction, nca, pod_spatial
from reference.networks.incremental import IncrementalNetwork, frozen
from reference.schedules import Recipe
from reference.scratch import ScratchLearner
from reference.spaces import STRENGTH, scratch_space
from suite.sdk import Choice, Task

MARGIN = 0.6


class ProxyLearner(ScratchLearner):
    """What PODNet and AFC share: a cosine head with several proxies a class, imprinting, balanced fine-tuning."""

    last_relu = False
    network: IncrementalNetwork[CosineHead]

    def build(self, classes: int) -> IncrementalNetwork[CosineHead]:
        backbone = self.backbone()
        return IncrementalNetwork(backbone, CosineHead(backbone.dimension, classes, self.proxies))

    @property
    def proxies(self) -> int:
        """Proxies per class."""
        return int(self.option("num_proxy"))

    def imprint(self, task: Task, old: int) -> None:
        """Set the new proxies to k-means centres of the class's normalised features, at the mean norm of the old."""
        newest, scale = self.network.head.newest(), self.network.head.mean_norm(before=old)
        with torch.no_grad():
            for label in range(old, self.seen):
                features = torch.from_numpy(self.normalised(task.images[task.labels == label]))
                rows = slice((label - old) * self.proxies, (label - old + 1) * self.proxies)
                newest[rows] = kmeans(features, self.proxies).to(newest) * scale


class PODNet(ProxyLearner):
    """Distil pooled feature maps of every stage and the direction of the features; classes are sets of proxies.

    Loss: NCA + factor (lambda_c POD-spatial + lambda_f POD-flat) from the second task on, factor = sqrt(C / C_new)
    (adaptive_factor) or 1; then the whole network but the old proxies is fine-tuned for post_ft_epochs at post_ft_lr on
    a class-balanced set, with the same loss. That, and new proxies drawn at random, is PyCIL, which the papers' tables
    were made with. Options: nca = "paper" for the loss as printed (see `reference.losses.nca`); imprint = true for the
    official code's k-means proxies. Old proxies are frozen; the backbone ends without ReLU. Scores: proxy head (option
    head = "nme").
    """

    name = "PODNet"
    description = "Pooled-outputs distillation and a local-similarity classifier."
    space = scratch_space(
        {
            "lambda_c": Choice([1, 3, 5, 7, 9]),
            "lambda_f": STRENGTH,
            "num_proxy": Choice([10, 20, 30, 50, 100]),
            "post_ft_epochs": Choice([5, 10, 20, 30, 50]),
            "post_ft_lr": Choice([0.001, 0.003, 0.005, 0.007, 0.01]),
            "adaptive_factor": Choice([True, False]),
        },
        head="linear",
        nca="as_coded",
        imprint=False,
    )

    def learn(self, task: Task) -> None:
        teacher = None if task.is_first else frozen(self.network)
        old = self.enlarge(task.classes)
        if teacher is not None:
            self.network.head.freeze_old()
            if self.option("imprint"):
                self.imprint(task, old)
        recipe = self.recipe_for(task)
        self.fit(self.pool(self.with_memory(task)), lambda batch: self.loss(batch, old, teacher), recipe)
        self.stage("post")
        if teacher is not None and len(self.memory):
            pool, recipe = self.pool(self.balanced(task)), self.fine_tuning(recipe)
            self.fit(pool, lambda batch: self.loss(batch, old, teacher), recipe, note="balanced fine-tuning")
        self.remember(task)

    def fine_tuning(self, recipe: Recipe) -> Recipe:
        """The second stage: few epochs, a small rate, a cosine."""
        return recipe.rescaled(epochs=self.option("post_ft_epochs"), lr=self.number("post_ft_lr"), kind="cosine")

    def loss(self, batch: Batch, old: int, teacher: IncrementalNetwork[CosineHead] | None) -> Tensor:
        """L_lsc + factor (lambda_c L_spatial + lambda_f L_flat) (equation 9)."""
        scores, features, maps = self.network.with_maps(batch.images)
        loss = nca(scores, batch.labels, MARGIN, as_coded=self.option("nca") == "as_coded")
        if teacher is None:
            return loss
        with torch.no_grad():
            old_maps = teacher.backbone.maps(batch.images)
        factor = math.sqrt(self.seen / max(self.seen - old, 1)) if self.option("adaptive_factor") else 1.0
        spatial = self.number("lambda_c") * pod_spatial(maps, old_maps)
        flat = self.number("lambda_f") * direction(features, old_maps[-1].mean((2, 3)))
        return loss + factor * (spatial + flat)
