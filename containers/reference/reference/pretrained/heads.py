"""Classification layers on features, for classes that come task by task."""

from __future__ import annotations

from typing import Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.pretrained.base import Growing


class Head(Growing):
    """A linear layer [C, D]. What trains in a task is a `part` of it, so that no other row moves, not even by decay."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(0, width), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(0), requires_grad=False)

    def grow(self, classes: int) -> None:
        """New rows begin as timm's ViTs do (normal, deviation 0.02), so that untrained classes score near zero."""
        rows, width = self.weight.shape
        if classes == rows:
            return
        fresh = torch.empty(classes - rows, width)
        nn.init.trunc_normal_(fresh, std=0.02)
        bias = functional.pad(self.bias.detach(), (0, classes - rows))
        self.weight = nn.Parameter(torch.cat([self.weight.detach(), fresh.to(self.weight.device)]), requires_grad=False)
        self.bias = nn.Parameter(bias, requires_grad=False)

    def forward(self, features: Tensor) -> Tensor:
        return functional.linear(features, self.weight, self.bias)

    def part(self, classes: Tensor) -> Part:
        """A trainable copy of the rows of `classes` (int64 [K], ascending)."""
        return Part(self.weight[classes].clone(), self.bias[classes].clone(), classes)

    @torch.no_grad()
    def put(self, part: Part) -> None:
        """Write a trained part back."""
        self.weight[part.classes] = part.weight
        self.bias[part.classes] = part.bias


class Part(nn.Module):
    """Some rows of a head, as parameters of their own: the classifier of one task."""

    classes: Tensor

    def __init__(self, weight: Tensor, bias: Tensor, classes: Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self.register_buffer("classes", classes)

    def forward(self, features: Tensor) -> Tensor:
        """Logits [B, K]."""
        return functional.linear(features, self.weight, self.bias)

    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy among the part's classes only: the logits of all others count as minus infinity."""
        return functional.cross_entropy(self(features), torch.searchsorted(self.classes, labels))


class CosinePart(nn.Module):
    """sigma * cosine to trainable weights; only for the training of one task (APER, RanPAC, EASE)."""

    classes: Tensor

    def __init__(self, width: int, classes: Tensor) -> None:
        super().__init__()
        bound = width**-0.5
        self.weight = nn.Parameter(torch.empty(len(classes), width).uniform_(-bound, bound))
        self.sigma = nn.Parameter(torch.ones(1))
        self.register_buffer("classes", classes)

    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy of the scaled cosines among the part's classes."""
        cosines = functional.normalize(features, dim=1) @ functional.normalize(self.weight, dim=1).T
        return functional.cross_entropy(self.sigma * cosines, torch.searchsorted(self.classes, labels))


Body = TypeVar("Body", bound=nn.Module)


class WithHead(nn.Module, Generic[Body]):
    """What a method trains beside the backbone, and a linear head that grows."""

    def __init__(self, body: Body, width: int) -> None:
        super().__init__()
        self.body = body
        self.head = Head(width)
