"""Losses that several methods share. Shapes: logits [B, C], labels int64 [B]; all are means over the batch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def distillation(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """KD_T(z, z') = mean of -sum softmax(z'/T) log_softmax(z/T): a cross-entropy, without the factor T^2."""
    target = functional.softmax(teacher / temperature, 1)
    return -(target * functional.log_softmax(logits / temperature, 1)).sum(1).mean()


def cross_entropy_of(logits: Tensor, labels: Tensor, classes: Tensor) -> Tensor:
    """Cross-entropy over the columns `classes` (int64 [K], ascending) only; every label must be one of them."""
    return functional.cross_entropy(logits[:, classes], torch.searchsorted(classes, labels))
