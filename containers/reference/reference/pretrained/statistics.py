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


class Gaussians(Growing):
    """One Gaussian per class: means [C, D] and Cholesky factors of the covariances, packed [C, D (D + 1) / 2].

    The factor is what sampling needs, so it is computed once, in float64, when the class is fitted; a class that comes
    again is fitted anew.
    """

    means: Tensor
    factors: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("means", torch.zeros(0, width))
        self.register_buffer("factors", torch.zeros(0, width * (width + 1) // 2))

    def grow(self, classes: int) -> None:
        more = classes - len(self.means)
        self.means, self.factors = (functional.pad(t, (0, 0, 0, more)) for t in (self.means, self.factors))

    def fit(self, label: int, features: Tensor, jitter: float = 1e-4) -> None:
        """Mean and covariance + jitter * I of the features [N, D] of a class; N may be smaller than D."""
        rows = features.double()
        mean = rows.mean(0)
        centred = rows - mean
        covariance = centred.T @ centred / max(1, len(rows) - 1)
        covariance.diagonal().add_(jitter)
        factor = torch.linalg.cholesky(covariance)
        self.means[label] = mean.float()
        self.factors[label] = factor[self._lower()].float()

    def sample(self, label: int, count: int, scale: float = 1.0) -> Tensor:
        """`count` draws [count, D] from N(scale * mean, covariance)."""
        width = self.means.shape[1]
        factor = self.means.new_zeros(width, width)
        factor[self._lower()] = self.factors[label]
        return self.means[label] * scale + torch.randn(count, width).to(self.means) @ factor.T

    def _lower(self) -> tuple[Tensor, Tensor]:
        rows, columns = torch.tril_indices(self.means.shape[1], self.means.shape[1], device=self.means.device)
        return rows, columns


class Mixtures(Growing):
    """K centroids per class with diagonal variances: means and variances [C, K, D], shares [C, K] (0 where unused)."""

    means: Tensor
    variances: Tensor
    shares: Tensor

    def __init__(self, width: int, centroids: int) -> None:
        super().__init__()
        self.register_buffer("means", torch.zeros(0, centroids, width))
        self.register_buffer("variances", torch.zeros(0, centroids, width))
        self.register_buffer("shares", torch.zeros(0, centroids))

    def grow(self, classes: int) -> None:
        more = classes - len(self.means)
        self.means, self.variances = (functional.pad(t, (0, 0, 0, 0, 0, more)) for t in (self.means, self.variances))
        self.shares = functional.pad(self.shares, (0, 0, 0, more))

    def fit(self, label: int, features: Tensor, jitter: float = 1e-4) -> None:
        """k-means of the features [N, D] of a class; a cluster's variance is that of its members, + jitter."""
        centres, member = k_means(features, self.means.shape[1])
        self.shares[label] = 0
        for k in range(len(centres)):
            mine = features[member == k]
            if len(mine):
                self.means[label, k] = mine.mean(0)
                self.variances[label, k] = mine.var(0, unbiased=False) + jitter
                self.shares[label, k] = len(mine) / len(features)

    def sample(self, label: int, count: int) -> Tensor:
        """`count` draws [count, D]: a centroid by its share, then its Gaussian."""
        chosen = torch.multinomial(self.shares[label].cpu(), count, replacement=True).to(self.means.device)
        noise = torch.randn(count, self.means.shape[2]).to(self.means)
        return self.means[label, chosen] + self.variances[label, chosen].sqrt() * noise

    def centroids(self, labels: list[int]) -> Tensor:
        """The centroids in use of the given classes [n, D]."""
        index = torch.tensor(labels, dtype=torch.int64, device=self.means.device)
        return self.means[index][self.shares[index] > 0]


def k_means(features: Tensor, count: int, rounds: int = 20) -> tuple[Tensor, Tensor]:
    """Lloyd's algorithm from `count` (or fewer) random samples: centres [k, D] and the cluster of each sample [N]."""
    start = torch.randperm(len(features))[:count].to(features.device)
    centres = features[start].clone()
    member = torch.cdist(features, centres).argmin(1)
    for _ in range(rounds):
        for k in range(len(centres)):
            if (mine := member == k).any():
                centres[k] = features[mine].mean(0)
        before, member = member, torch.cdist(features, centres).argmin(1)
        if torch.equal(before, member):
            break
    return centres, member
