"""Classifiers that are statistics of features: class means, Gram matrices, Gaussians to replay features from."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from reference.pretrained.base import Growing


class Prototypes(Growing):
    """Class means, kept as sums (float64 [C, D]) and counts, so that classes may come again in any order."""

    sums: Tensor
    counts: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("sums", torch.zeros(0, width, dtype=torch.float64))
        self.register_buffer("counts", torch.zeros(0, dtype=torch.int64))

    def grow(self, classes: int) -> None:
        more = classes - len(self.counts)
        self.sums = functional.pad(self.sums, (0, 0, 0, more))
        self.counts = functional.pad(self.counts, (0, more))

    def add(self, features: Tensor, labels: Tensor) -> None:
        """Take in features [N, D] with labels [N]. The order of the sums is that of the samples: no atomics."""
        for label in sorted(set(labels.tolist())):
            mine = features[labels == label]
            self.sums[label] += mine.double().sum(0)
            self.counts[label] += len(mine)

    def means(self) -> Tensor:
        """float32 [C, D]; zero for a class without samples."""
        return (self.sums / self.counts.clamp(min=1).unsqueeze(1)).float()


def cosine(features: Tensor, prototypes: Tensor) -> Tensor:
    """Cosines [B, C] between features [B, D] and prototypes [C, D]."""
    return functional.normalize(features, dim=1) @ functional.normalize(prototypes, dim=1).T
