"""BiC: Large Scale Incremental Learning (Wu et al., 2019)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.classifiers import LinearHead
from reference.engine import Batch
from reference.losses import distillation
from reference.networks.incremental import IncrementalNetwork, frozen
from reference.networks.resnet import ResNet
from reference.scratch import Arrays, ScratchLearner
from reference.spaces import STRENGTH, TEMPERATURE, scratch_space
from suite.sdk import Choice, Task


class BiasLayer(nn.Module):
    """Two parameters: alpha z + beta (equation 4), the identity at first."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1))
        self.beta = nn.Parameter(torch.zeros(1))

    def forward(self, z: Tensor) -> Tensor:
        return self.alpha * z + self.beta


class BiasCorrectedNetwork(IncrementalNetwork[LinearHead]):
    """A network whose logits pass through one bias layer per task."""

    def __init__(self, backbone: ResNet, classes: int) -> None:
        super().__init__(backbone, LinearHead(backbone.dimension, classes))
        self.biases = nn.ModuleList([BiasLayer()])
        self.sizes = [classes]

    def forward(self, x: Tensor) -> Tensor:
        return self.correct(super().forward(x))

    def correct(self, z: Tensor) -> Tensor:
        """Logits [B, C], each task's classes through its bias layer."""
        return torch.cat([bias(part) for bias, part in zip(self.biases, torch.split(z, self.sizes, 1), strict=True)], 1)

    def grow(self, classes: int) -> None:
        self.sizes.append(classes - sum(self.sizes))
        self.biases.append(BiasLayer().to(self.head.weight.device))
        super().grow(classes)


class BiC(ScratchLearner):
    """Replay with distillation, then a linear correction of the new classes' logits fitted on held-out images.

    Stage 1: lambda_t KD_T + (1 - lambda_t) CE (lambda_kd = 0), else CE + lambda_kd KD_T; the teacher's logits are its
    corrected ones. Stage 2, from the second task on: only the newest (alpha, beta) train, for as many epochs, on
    split_ratio * memory / C_old images per class that stage 1 does not see; at least one, and at least one image per
    class stays for stage 1. In stage 2 the network is in evaluation mode.

    PyCIL's stage 2, which the papers' tables were made with, takes the softmax twice, so that the correction hardly
    learns; here it is mended. Option double_softmax = true brings it back. Scores: corrected linear head (option
    head = "nme").
    """

    name = "BiC"
    description = "Distillation, then a two-parameter correction of the new classes' logits."
    space = scratch_space(
        {"temperature": TEMPERATURE, "lambda_kd": STRENGTH, "split_ratio": Choice([0.05, 0.1, 0.15, 0.2, 0.3])},
        head="linear",
        double_softmax=False,
    )
    network: BiasCorrectedNetwork

    def build(self, classes: int) -> BiasCorrectedNetwork:
        return BiasCorrectedNetwork(self.backbone(), classes)

    def learn(self, task: Task) -> None:
        teacher = None if task.is_first else frozen(self.network)
        old = self.enlarge(task.classes)
        recipe = self.recipe_for(task)
        train, held_out = self.split(self.with_memory(task), old)
        weights = [p for name, p in self.network.named_parameters() if not name.startswith("biases")]
        self.fit(self.pool(train), lambda batch: self.loss(batch, old, teacher), recipe, parameters=weights)
        self.stage("post")
        if len(held_out[1]) and len(self.network.biases) > 1:
            self.network.eval()
            self.fit(
                self.pool(held_out), self.bias_loss, recipe, network=self.network.biases[-1], note="bias correction"
            )
        self.remember(task)

    def loss(self, batch: Batch, old: int, teacher: BiasCorrectedNetwork | None) -> Tensor:
        """Stage 1 (equation 3), with the teacher's corrected logits."""
        z = self.network(batch.images)
        loss = functional.cross_entropy(z, batch.labels)
        if teacher is None:
            return loss
        kd = distillation(z[:, :old], teacher(batch.images), self.number("temperature"))
        if self.number("lambda_kd"):
            return loss + self.number("lambda_kd") * kd
        share = old / self.seen
        return share * kd + (1 - share) * loss

    def bias_loss(self, batch: Batch) -> Tensor:
        """Stage 2 (equation 5): CE of the corrected logits, with everything but the bias layers fixed."""
        with torch.no_grad():
            z = self.network.head(self.network.backbone(batch.images))
        z = self.network.correct(z)
        return functional.cross_entropy(z.softmax(1) if self.option("double_softmax") else z, batch.labels)

    def split(self, data: Arrays, old: int) -> tuple[Arrays, Arrays]:
        """Training and held-out images; nothing is held out while there are no exemplars."""
        images, labels = data
        held = np.zeros(len(labels), bool)
        if len(self.memory):
            count = max(1, int(self.number("split_ratio") * self.memory.share(old)))
            for label in np.unique(labels):
                rows = np.flatnonzero(labels == label)
                held[rows[torch.randperm(len(rows)).numpy()[: min(count, len(rows) - 1)]]] = True
        return (images[~held], labels[~held]), (images[held], labels[held])
