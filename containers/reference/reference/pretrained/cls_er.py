"""CLS-ER (Arani et al., 2022, ICLR): rehearsal with two slowly following copies of the network."""

from __future__ import annotations

import copy
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.engine import Batch
from reference.pretrained.heads import Head, WithHead
from reference.pretrained.rehearsal import RehearsalLearner, StreamAndMemory
from reference.pretrained.sources import Watched
from reference.pretrained.spaces import WHOLE_NETWORK, space_of
from reference.pretrained.whole import thawed
from reference.vit import Backbone
from suite.sdk import Choice, Context, Space, Task


class Semantic(nn.Module):
    """A ViT and a head that follow the working network."""

    def __init__(self, body: Backbone, head: Head) -> None:
        super().__init__()
        self.body, self.head = body, head

    def forward(self, pixels: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(pixels))
        return logits


class ComplementarySystems(WithHead[Backbone]):
    """The working network, and the plastic and the stable one."""

    def __init__(self, body: Backbone, width: int) -> None:
        super().__init__(body, width)
        self.plastic = Semantic(copy.deepcopy(body), Head(width)).requires_grad_(False)
        self.stable = Semantic(copy.deepcopy(body), Head(width)).requires_grad_(False)

    @torch.no_grad()
    def align_new_rows(self, before: int) -> None:
        """Let the copies' heads begin new classes as the working head does."""
        for copied in (self.plastic, self.stable):
            copied.head.weight[before:] = self.head.weight[before:]
            copied.head.bias[before:] = self.head.bias[before:]

    @torch.no_grad()
    def follow(self, which: Semantic, alpha: float) -> None:
        """theta <- alpha theta + (1 - alpha) theta_working (eq. 3 and 4)."""
        working = [*self.body.parameters(), *self.head.parameters()]
        for slow, fast in zip([*which.body.parameters(), *which.head.parameters()], working, strict=True):
            slow.mul_(alpha).add_(fast, alpha=1 - alpha)


class CLSER(RehearsalLearner):
    """Memory items are also held to the logits of whichever copy is surer of the truth; the stable copy predicts."""

    name = "CLS-ER"
    description = "Rehearsal with a plastic and a stable running mean of the network"
    space: ClassVar[Space] = space_of(
        WHOLE_NETWORK,
        {
            "consistency": Choice([0.1, 0.15, 0.2]),
            "stable_rate": Choice([0.1, 0.4, 0.7]),
            "plastic_rate": Choice([0.3, 0.6, 0.9]),
            "ema_decay": Choice([0.99, 0.999]),
        },
    )
    carried: ClassVar[tuple[str, ...]] = ("memory", "steps_done")
    network: ComplementarySystems

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.steps_done = 0

    def build(self) -> ComplementarySystems:
        return ComplementarySystems(thawed(self.backbone), self.width)

    def learn(self, task: Task) -> None:
        before = self.begin(task.classes)
        network = self.network
        network.align_new_rows(before)
        trained = nn.ModuleList([network.body, network.head]).requires_grad_(True)
        groups = self.groups(network.body, network.head)
        source = Watched(StreamAndMemory(self, task), after_step=self.after_step)
        self.fit(trained, source, self.loss, self.recipe(), groups=groups)

    def loss(self, batch: Batch) -> Tensor:
        """CE(stream and memory) + consistency * MSE(z, target) on the memory (eq. 5)."""
        logits = self.logits(batch.images)
        loss = functional.cross_entropy(logits, batch.labels)
        kept = batch.rows < 0
        if not bool(kept.any()):
            return loss
        target = self.target(batch.images[kept], batch.labels[kept])
        weight: float = self.option("consistency")
        return loss + weight * functional.mse_loss(logits[kept], target)

    @torch.no_grad()
    def target(self, pixels: Tensor, labels: Tensor) -> Tensor:
        """For each sample the logits of the copy that gives the true class the higher probability."""
        plastic, stable = self.network.plastic(pixels), self.network.stable(pixels)
        truth = labels[:, None]
        is_stable = stable.softmax(1).gather(1, truth) > plastic.softmax(1).gather(1, truth)
        return torch.where(is_stable, stable, plastic)

    def after_step(self) -> None:
        """Each copy follows at its own random rate; the decay rises to its bound."""
        self.steps_done += 1
        alpha = min(1 - 1 / (self.steps_done + 1), self.option("ema_decay"))
        for copied, rate in (
            (self.network.plastic, self.option("plastic_rate")),
            (self.network.stable, self.option("stable_rate")),
        ):
            if float(torch.rand(())) < rate:
                self.network.follow(copied, alpha)

    def features(self, pixels: Tensor) -> Tensor:
        features: Tensor = self.network.stable.body(pixels)
        return features

    def scores(self, pixels: Tensor) -> Tensor:
        scores: Tensor = self.network.stable(pixels)
        return scores

    def classifier(self) -> np.ndarray:
        """Weights float32 [D, C] of the stable head."""
        return np.asarray(self.network.stable.head.weight.detach().T.cpu().numpy())
