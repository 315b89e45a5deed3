"""Learners that train the ViT itself, from the mounted weights on."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor, nn

from reference.pretrained.headed import HeadedLearner
from reference.pretrained.heads import Part, WithHead
from reference.vit import Backbone
from suite.protocol.messages import LearnResult


def thawed(backbone: Backbone) -> Backbone:
    """A copy of which everything trains."""
    return copy.deepcopy(backbone).requires_grad_(True)


class WholeNetworkLearner(HeadedLearner):
    """`network.body` is the learner's own ViT; its learning rate is `backbone_lr_scale` times that of the head."""

    network: WithHead[Backbone]

    def build(self) -> WithHead[Backbone]:
        return WithHead(thawed(self.backbone), self.width)

    def features(self, pixels: Tensor) -> Tensor:
        features: Tensor = self.network.body(pixels)
        return features

    def groups(self, body: nn.Module, head: nn.Module | Part) -> list[dict[str, Any]]:
        """Parameter groups of a ViT and a head."""
        scale = self.option("backbone_lr_scale")
        return [{"params": list(body.parameters()), "scale": scale}, {"params": list(head.parameters())}]

    def report(self) -> LearnResult:
        """As always, less one encoder: the learner's own ViT stands in the place of the mounted one (CLDyB, B.4)."""
        result = super().report()
        encoder = sum(p.numel() for p in self.backbone.parameters())
        return result.model_copy(
            update={
                "stored_parameters": result.stored_parameters - encoder,
                "metrics": {**result.metrics, "encoder_parameters": float(encoder)},
            }
        )
