"""AFC: Class-Incremental Learning by Knowledge Distillation with Adaptive Feature Consolidation (Kang et al., 2022)."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn

from reference.classifiers import CosineHead
from reference.engine import Batch, Source
from reference.losses import discrepancy, nca
from reference.methods.podnet import MARGIN, ProxyLearner
from reference.networks.incremental import IncrementalNetwork, frozen
from reference.networks.resnet import ResNet
from reference.spaces import scratch_space
from suite.sdk import Choice, Task

CLAMP = 5.0


class ImportanceNetwork(IncrementalNetwork[CosineHead]):
    """A network that carries the importance of every channel of every distilled map, mean 1 per map."""

    def __init__(self, backbone: ResNet, head: CosineHead) -> None:
        super().__init__(backbone, head)
        for index, channels in enumerate(backbone.map_channels):
            self.register_buffer(f"importance{index}", torch.ones(channels))

    @property
    def importance(self) -> list[Tensor]:
        """One vector [C_l] per map."""
        return [cast("Tensor", getattr(self, f"importance{i}")) for i in range(len(self.backbone.map_channels))]


class AFC(ProxyLearner):
    """Distil feature maps channel by channel, weighted by how much the loss depends on the channel.

    Loss: NCA (as coded) + lambda_c sqrt(C / C_new) discrepancy; gradients are clamped to +-5 elementwise. New proxies
    start at k-means centres. Then the classifier alone is fine-tuned on a class-balanced set (20 epochs, rate 0.05).
    After that, one pass over the training data in training mode gives the importances: squared gradients of the loss by
    the maps, summed over space, averaged over images. As in the official code; there lambda_c = 4 for CIFAR, table 4
    has no AFC, so a grid is spread around it. Scores: proxy head (option head = "nme").
    """

    name = "AFC"
    description = "Importance-weighted consolidation of feature maps."
    space = scratch_space(
        {"lambda_c": Choice([2, 4, 6, 8, 10])}, num_proxy=10, post_ft_epochs=20, post_ft_lr=0.05, head="linear"
    )
    network: ImportanceNetwork

    def build(self, classes: int) -> ImportanceNetwork:
        backbone = self.backbone()
        return ImportanceNetwork(backbone, CosineHead(backbone.dimension, classes, self.proxies))

    def learn(self, task: Task) -> None:
        teacher = None if task.is_first else frozen(self.network)
        old = self.enlarge(task.classes)
        if teacher is not None:
            self.network.head.freeze_old()
            self.imprint(task, old)
        recipe, data = self.recipe_for(task), self.with_memory(task)
        self.fit(
            self.pool(data), lambda batch: self.loss(batch, old, teacher), recipe, before_step=self.clamp_gradients
        )
        self.stage("post")
        if teacher is not None and len(self.memory):
            self.fine_tune(task)
        self.estimate_importance(self.pool(data))
        self.remember(task)

    def loss(self, batch: Batch, old: int, teacher: ImportanceNetwork | None) -> Tensor:
        """L_cls + lambda_c sqrt(C / C_new) L_disc (equation 10)."""
        scores, _, maps = self.network.with_maps(batch.images)
        loss = nca(scores, batch.labels, MARGIN)
        if teacher is None:
            return loss
        with torch.no_grad():
            old_maps = teacher.backbone.maps(batch.images)
        factor = self.number("lambda_c") * math.sqrt(self.seen / max(self.seen - old, 1))
        return loss + factor * discrepancy(maps, old_maps, teacher.importance)

    def clamp_gradients(self) -> None:
        """Every element of every gradient to [-5, 5]."""
        nn.utils.clip_grad_value_(self.network.parameters(), CLAMP)

    def fine_tune(self, task: Task) -> None:
        """Train the classifier (all proxies and the scale) on a class-balanced set, the backbone fixed."""
        data = self.balanced(task)
        self.network.eval()
        recipe = self.recipe.rescaled(epochs=self.option("post_ft_epochs"), lr=self.number("post_ft_lr"), kind="cosine")
        head = self.network.head.requires_grad_(True)
        self.fit(self.pool(data), self.head_loss, recipe, network=head, note="balanced fine-tuning")

    def head_loss(self, batch: Batch) -> Tensor:
        """NCA of the head on fixed features."""
        with torch.no_grad():
            features = self.network.features(batch.images)
        return nca(self.network.head(features), batch.labels, MARGIN)

    def estimate_importance(self, pool: Source) -> None:
        """Importance of channel c of map l: mean over images of sum over space of (dL / dmap)^2, mean 1 per map."""
        totals = [torch.zeros_like(weight) for weight in self.network.importance]
        self.network.train()
        for batch in pool.epoch():
            scores, _, maps = self.network.with_maps(batch.images)
            gradients = torch.autograd.grad(nca(scores, batch.labels, MARGIN), maps)
            for total, gradient in zip(totals, gradients, strict=True):
                total += gradient.square().sum((2, 3)).mean(0)
        for weight, total in zip(self.network.importance, totals, strict=True):
            weight.copy_(total / total.mean().clamp(min=1e-30))
