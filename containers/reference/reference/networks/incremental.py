"""A backbone with a head that grows."""

from __future__ import annotations

import copy
from typing import Protocol, TypeVar

from torch import Tensor, nn

from reference.networks.resnet import ResNet, pool

Module = TypeVar("Module", bound=nn.Module)


class Head(Protocol):
    """What a network asks of its classification layer."""

    def grow(self, classes: int) -> None: ...
    def matrix(self) -> Tensor: ...
    def __call__(self, features: Tensor) -> Tensor: ...


class IncrementalNetwork(nn.Module):
    """Scores [B, classes] = head(backbone(images))."""

    head: Head

    def __init__(self, backbone: ResNet, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.backbone(x))

    def features(self, x: Tensor) -> Tensor:
        """Features [B, D] before the head."""
        return self.backbone(x)  # type: ignore[no-any-return]

    def with_maps(self, x: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Scores, features and the maps to distil, in one pass."""
        maps = self.backbone.maps(x)
        features = pool(maps[-1])
        return self.head(features), features, maps

    def grow(self, classes: int) -> None:
        """Make room for `classes` classes in all."""
        self.head.grow(classes)


def frozen(module: Module) -> Module:
    """A copy in evaluation mode that takes no gradients: the teacher."""
    return copy.deepcopy(module).requires_grad_(False).eval()
