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


def nca(scores: Tensor, labels: Tensor, margin: float, *, as_coded: bool = True) -> Tensor:
    """PODNet's NCA loss with margin (equation 8) on scores [B, C] that include the learned scale.

    `as_coded` is what PODNet's, PyCIL's and AFC's code computes: the margin is taken from every score, so that it
    cancels, and the positive, left out of the denominator, still adds exp(0) after the shift by the row's maximum;
    there is no hinge. The paper's form: [-log(exp(s_y - margin) / sum_{i != y} exp(s_i))]_+.
    """
    if as_coded:
        shifted = scores - scores.max(1, keepdim=True).values
        own = shifted.gather(1, labels.unsqueeze(1))
        others = shifted.scatter(1, labels.unsqueeze(1), 0.0)
        return (torch.logsumexp(others, 1) - own.squeeze(1)).mean()
    own = scores.gather(1, labels.unsqueeze(1)).squeeze(1)
    others = scores.scatter(1, labels.unsqueeze(1), -torch.inf)
    return functional.relu(torch.logsumexp(others, 1) - (own - margin)).mean()


def pod_spatial(maps: list[Tensor], teacher: list[Tensor]) -> Tensor:
    """PODNet, equations 3 to 5: distance of squared maps [B, C, H, W] pooled over width and over height.

    Both poolings are concatenated and L2-normalised per image; the distances are averaged over images and maps.
    """
    losses = []
    for a, b in zip(maps, teacher, strict=True):
        difference = functional.normalize(_pools(a), dim=1) - functional.normalize(_pools(b), dim=1)
        losses.append(torch.linalg.vector_norm(difference, dim=1).mean())
    return torch.stack(losses).mean()


def _pools(a: Tensor) -> Tensor:
    squared = a.square()
    return torch.cat([squared.sum(3).flatten(1), squared.sum(2).flatten(1)], 1)


def direction(features: Tensor, teacher: Tensor) -> Tensor:
    """Mean of 1 - cos(f, f') (PODNet's POD-flat, LUCIR's less-forget constraint)."""
    return (1 - functional.cosine_similarity(features, teacher)).mean()


def discrepancy(maps: list[Tensor], teacher: list[Tensor], importance: list[Tensor]) -> Tensor:
    """AFC, equation 9: squared maps, each channel L2-normalised over space, distances weighted per channel.

    maps: [B, C_l, H_l, W_l]; importance: [C_l] with mean 1. Mean over images, channels and maps.
    """
    losses = []
    for a, b, weight in zip(maps, teacher, importance, strict=True):
        x, y = (functional.normalize(m.square().flatten(2), dim=2) for m in (a, b))
        losses.append((torch.linalg.vector_norm(x - y, dim=2) * weight).mean())
    return torch.stack(losses).mean()
