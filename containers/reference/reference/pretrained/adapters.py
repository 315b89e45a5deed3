"""Adapters, low-rank updates and prompt tokens: small trainable modules beside a frozen ViT."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.vit import Attached, Backbone


class Adapter(nn.Module):
    """scale * up(activation(down(x))): a bottleneck that starts as zero.

    AdaptFormer (APER, RanPAC, EASE): ReLU, scale 0.1, dropout 0.1. LAE: GELU, scale 1, no dropout.
    """

    def __init__(
        self, width: int, bottleneck: int, *, scale: float = 0.1, drop: float = 0.1, gelu: bool = False
    ) -> None:
        super().__init__()
        self.down = nn.Linear(width, bottleneck)
        self.up = nn.Linear(bottleneck, width)
        nn.init.kaiming_uniform_(self.down.weight, a=math.sqrt(5))
        for zero in (self.down.bias, self.up.weight, self.up.bias):
            nn.init.zeros_(zero)
        self._scale, self._drop, self._gelu = scale, drop, gelu

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.down(x)
        hidden = functional.gelu(hidden) if self._gelu else functional.relu(hidden)
        out: Tensor = self.up(functional.dropout(hidden, self._drop, self.training))
        return out * self._scale


class LowRank(nn.Module):
    """x A B with rank r; B starts as zero (LoRA)."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.empty(width, rank))
        self.b = nn.Parameter(torch.zeros(rank, width))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.a @ self.b


class MlpAdapters(nn.Module):
    """One AdaptFormer adapter parallel to the MLP of every block."""

    def __init__(self, backbone: Backbone, bottleneck: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Adapter(backbone.width, bottleneck) for _ in range(backbone.depth))

    def attached(self) -> Mapping[int, Attached]:
        """What to hand to `run`."""
        return {index: Attached(mlp=adapter) for index, adapter in enumerate(self.blocks)}


class PromptTokens(nn.Module):
    """Trainable input tokens [L, D] before the first block (VPT-shallow)."""

    def __init__(self, backbone: Backbone, length: int) -> None:
        super().__init__()
        bound = math.sqrt(6 / (3 * backbone.vit.patch_embed.num_patches + backbone.width))
        self.tokens = nn.Parameter(torch.empty(1, length, backbone.width).uniform_(-bound, bound))
