"""APER with adapters, called ADAM-Adapter at first (Zhou et al., 2023, Revisiting class-incremental learning with
pre-trained models): tune to the first task, then class means in the features of both the plain and the tuned ViT.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from reference.pretrained.adapted import AdaptedLearner
from reference.pretrained.adapters import MlpAdapters
from reference.pretrained.spaces import ADAPTER, REPRESENTATION, space_of
from reference.pretrained.statistics import Prototypes, cosine
from reference.vit import run
from suite.sdk import Space, Task


class Tuned(nn.Module):
    """Adapters, and class means in the 2 D concatenated features."""

    def __init__(self, adapters: MlpAdapters, width: int) -> None:
        super().__init__()
        self.adapters = adapters
        self.prototypes = Prototypes(2 * width)


class AdamAdapter(AdaptedLearner):
    """Adapters in all blocks learn in the first task; from then on only class means are added."""

    name = "ADAM-Adapter"
    description = "Adapters tuned on the first task, class means on plain and tuned features"
    space: ClassVar[Space] = space_of(REPRESENTATION, ADAPTER)
    network: Tuned

    def build(self) -> Tuned:
        return Tuned(MlpAdapters(self.backbone, self.option("ffn_num")), self.width)

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        if len(self.tasks) == 1:
            self.tune(task, self.network.adapters, self.adapted)
            self.stage("post")
        self.network.prototypes.add(self.gather(task.images, self.features), self.labels(task))

    def adapted(self, pixels: Tensor) -> Tensor:
        """Features [B, D] of the tuned ViT."""
        return self.backbone.pool(run(self.backbone.vit, pixels, self.network.adapters.attached()))

    def features(self, pixels: Tensor) -> Tensor:
        """[plain, tuned], concatenated before any normalisation: [B, 2 D]."""
        return torch.cat([self.backbone(pixels), self.adapted(pixels)], 1)

    def scores(self, pixels: Tensor) -> Tensor:
        return cosine(self.features(pixels), self.network.prototypes.means())
