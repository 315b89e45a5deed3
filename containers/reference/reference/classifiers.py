"""Classification layers that grow with the classes."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional


def _fresh(rows: int, columns: int) -> Tensor:
    weight = torch.empty(rows, columns)
    nn.init.kaiming_uniform_(weight, nonlinearity="linear")
    return weight


class LinearHead(nn.Module):
    """Linear layer: Kaiming-uniform weights [classes, features], zero bias; growth keeps the learned block."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(_fresh(classes, features))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, features: Tensor) -> Tensor:
        return functional.linear(features, self.weight, self.bias)

    def grow(self, classes: int, features: int | None = None) -> None:
        """More rows, and more columns if `features` is given; what is new is drawn afresh, the rest stays."""
        rows, columns = self.weight.shape
        weight, bias = _fresh(classes, features or columns), torch.zeros(classes)
        weight, bias = weight.to(self.weight.device), bias.to(self.bias.device)
        weight[:rows, :columns] = self.weight.detach()
        bias[:rows] = self.bias.detach()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def matrix(self) -> Tensor:
        """The weights as [features, classes], for the comparison with optimal classifiers."""
        return self.weight.detach().T


class BlockHead(nn.Module):
    """One block of weights per growth step, so that old classes can be frozen while new ones train."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList()

    def freeze_old(self) -> None:
        """Let only the newest block train."""
        for block in list(self.blocks)[:-1]:
            block.requires_grad_(False)


class TaskHeads(BlockHead):
    """Linear heads, one per step, whose logits are concatenated (MAS)."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self._features = features
        self._classes = classes
        self.blocks.append(LinearHead(features, classes))

    def forward(self, features: Tensor) -> Tensor:
        return torch.cat([block(features) for block in self.blocks], 1)

    def grow(self, classes: int) -> None:
        """A further head for the classes from the present count on."""
        device = next(self.parameters()).device
        self.blocks.append(LinearHead(self._features, classes - self._classes).to(device))
        self._classes = classes

    def matrix(self) -> Tensor:
        """All weights as [features, classes]."""
        return torch.cat([cast("LinearHead", block).matrix() for block in self.blocks], 1)
