"""Classification layers that grow with the classes."""

from __future__ import annotations

import math
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


class CosineHead(BlockHead):
    """sigma <f/|f|, w/|w|> with a learned scale sigma, 1 at first (LUCIR, equation 2).

    With `proxies` K > 1 a class has K weight vectors and scores sum_k softmax_k(s) s over its cosines s (PODNet,
    equation 7: local similarity classifier). Weights are drawn from U(-1/sqrt(d), 1/sqrt(d)).
    """

    def __init__(self, features: int, classes: int, proxies: int = 1) -> None:
        super().__init__()
        self._features = features
        self._classes = classes
        self.proxies = proxies
        self.scale = nn.Parameter(torch.ones(1))
        self.blocks.append(self._block(classes))

    def _block(self, classes: int) -> nn.ParameterList:
        bound = 1 / math.sqrt(self._features)
        weight = torch.empty(classes * self.proxies, self._features).uniform_(-bound, bound)
        return nn.ParameterList([nn.Parameter(weight)])

    @property
    def weights(self) -> list[Tensor]:
        """One [classes * K, D] matrix per growth step."""
        return [cast("nn.ParameterList", block)[0] for block in self.blocks]

    def newest(self) -> Tensor:
        """The weights of the newest classes."""
        return self.weights[-1]

    def mean_norm(self, before: int) -> Tensor:
        """Mean norm of the weights of the first `before` classes."""
        old = torch.cat(self.weights).detach()[: before * self.proxies]
        mean: Tensor = torch.linalg.vector_norm(old, dim=1).mean()
        return mean

    def cosines(self, features: Tensor) -> Tensor:
        """Scores [B, classes] without sigma."""
        weight = functional.normalize(torch.cat(self.weights), dim=1)
        similarity = functional.linear(functional.normalize(features, dim=1), weight)
        if self.proxies == 1:
            return similarity
        similarity = similarity.view(len(features), -1, self.proxies)
        return (similarity.softmax(2) * similarity).sum(2)

    def forward(self, features: Tensor) -> Tensor:
        return self.scale * self.cosines(features)

    def grow(self, classes: int) -> None:
        """A further block for the classes from the present count on."""
        self.blocks.append(self._block(classes - self._classes).to(self.scale.device))
        self._classes = classes

    def matrix(self) -> Tensor:
        """Normalised weights as [features, classes]; with several proxies, their mean per class."""
        weight = functional.normalize(torch.cat(self.weights).detach(), dim=1)
        return weight.view(self._classes, self.proxies, -1).mean(1).T


@torch.no_grad()
def align(head: LinearHead, old: int) -> float:
    """WA, equation 5: multiply the rows from `old` on by gamma = mean |w_old| / mean |w_new|; returns gamma.

    Biases stay as they are. Nothing happens (gamma 1) where there are no old or no new classes.
    """
    norms = head.weight.norm(dim=1)
    if old in (0, len(norms)):
        return 1.0
    gamma = norms[:old].mean() / norms[old:].mean()
    head.weight[old:] *= gamma
    return float(gamma)
