"""A backbone with a head that grows."""

from __future__ import annotations

import copy
from typing import Any, Generic, TypeVar

from torch import Tensor, nn

from reference.networks.resnet import ResNet, pool

AnyModule = TypeVar("AnyModule", bound=nn.Module)
AnyHead = TypeVar("AnyHead", bound=nn.Module)


class Network(nn.Module):
    """What a learner asks of its network: scores [B, classes] are head(features(x)), unless it says otherwise."""

    head: Any
    """A growing classification layer with `grow(classes)` and `matrix()`."""

    def features(self, x: Tensor) -> Tensor:
        """Features [B, D] before the head."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.features(x))
        return scores

    def grow(self, classes: int) -> None:
        """Make room for `classes` classes in all."""
        self.head.grow(classes)


class IncrementalNetwork(Network, Generic[AnyHead]):
    """Scores [B, classes] = head(backbone(images))."""

    def __init__(self, backbone: ResNet, head: AnyHead) -> None:
        super().__init__()
        self.backbone = backbone
        self.head: AnyHead = head

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.backbone(x)
        return features

    def with_maps(self, x: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Scores, features and the maps to distil, in one pass."""
        maps = self.backbone.maps(x)
        features = pool(maps[-1])
        return self.head(features), features, maps


def frozen(module: AnyModule) -> AnyModule:
    """A copy in evaluation mode that takes no gradients: the teacher."""
    return copy.deepcopy(module).requires_grad_(False).eval()
