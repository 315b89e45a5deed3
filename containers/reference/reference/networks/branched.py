"""Networks that gain a branch per task; earlier branches are frozen."""

from __future__ import annotations

import copy
from typing import Literal, Self

import torch
from torch import Tensor, nn

from reference.classifiers import LinearHead
from reference.networks.incremental import Network
from reference.networks.resnet import ResNet, pool


class Specialised(nn.Module):
    """The last stage of a ResNet with pooling: MEMO's branch."""

    def __init__(self, stage: nn.Sequential) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, x: Tensor) -> Tensor:
        return pool(self.stage(x))


class BranchedNetwork(Network):
    """Features are those of all branches side by side, [B, D * branches]; one linear head over all of them.

    DER repeats the whole backbone; MEMO shares `general` and repeats the last stage. Frozen parts take no gradients and
    stay in evaluation mode, whatever mode the network is put into.
    """

    def __init__(self, general: nn.Module, branch: nn.Module, dimension: int, classes: int) -> None:
        super().__init__()
        self.general = general
        self.branches = nn.ModuleList([branch])
        self.dimension = dimension
        self.head: LinearHead = LinearHead(dimension, classes)

    @classmethod
    def whole(cls, backbone: ResNet, classes: int) -> Self:
        """DER: nothing is shared."""
        return cls(nn.Identity(), backbone, backbone.dimension, classes)

    @classmethod
    def shared(cls, backbone: ResNet, classes: int) -> Self:
        """MEMO: everything but the last stage is shared."""
        return cls(backbone.general, Specialised(backbone.special), backbone.dimension, classes)

    def features(self, x: Tensor) -> Tensor:
        """Features of all branches, oldest first."""
        x = self.general(x)
        return torch.cat([branch(x) for branch in self.branches], 1)

    def grow(self, classes: int, origin: Literal["last", "first"] = "last") -> None:
        """Freeze the branches, add a copy of the last (DER, MEMO) or the first one (BEEF), widen the head."""
        branch = copy.deepcopy(self.branches[-1 if origin == "last" else 0]).requires_grad_(True)
        self.branches.requires_grad_(False)
        self.branches.append(branch)
        self.head.grow(classes, self.dimension * len(self.branches))

    def newest(self, features: Tensor) -> Tensor:
        """The newest branch's part [B, D] of `features`."""
        return features[:, -self.dimension :]

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if not any(p.requires_grad for p in self.general.parameters()):
            self.general.eval()
        for branch in list(self.branches)[:-1]:
            branch.eval()
        return self
