"""Ridge regression on random features, accumulated over tasks: the classifier of RanPAC.

All sums are float64: with ridges down to 1e-8 the rounding of float32 sums would decide the result.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

RIDGES = tuple(10.0**k for k in range(-8, 9))
_HELD_OUT = 0.2
_ROWS = 512
_COLUMNS = 1024


class RandomFeatures:
    """h = ReLU(f W) with fixed W ~ N(0, 1) [D, M]. W follows from the seed, so it is not part of any state."""

    def __init__(self, width: int, dimension: int, seed: int, device: torch.device) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.weight = torch.randn(width, dimension, generator=generator).to(device)

    @property
    def dimension(self) -> int:
        """M."""
        return self.weight.shape[1]

    def __call__(self, features: Tensor, columns: slice = slice(None)) -> Tensor:
        """Random features float32 [N, M] of features [N, D], or some of their columns."""
        return functional.relu(features @ self.weight[:, columns])


class RidgeClassifier:
    """G = sum of h h', Q = sum of h y' over all tasks, and the weights (G + ridge I)^-1 Q of the latest ridge.

    Columns of Q grow with the classes. G is symmetric; the state holds its lower triangle only.
    """

    def __init__(self, expand: RandomFeatures, device: torch.device) -> None:
        self.expand = expand
        self.gram = torch.zeros(expand.dimension, expand.dimension, dtype=torch.float64, device=device)
        self.cross = torch.zeros(expand.dimension, 0, dtype=torch.float64, device=device)
        self.weight = torch.zeros(0, expand.dimension, device=device)
        self.ridge = 1.0

    def grow(self, classes: int) -> None:
        """Columns of zeros for new classes."""
        self.cross = functional.pad(self.cross, (0, classes - self.cross.shape[1]))

    def learn(self, features: Tensor, labels: Tensor) -> None:
        """Choose the ridge on a fifth of this task, add its sums, solve anew. Features [N, D], labels [N]."""
        targets = functional.one_hot(labels, self.cross.shape[1]).double()
        self.ridge = choose_ridge(self.expand, features, targets, self.ridge)
        for rows in torch.split(torch.arange(len(labels), device=labels.device), _ROWS):
            h = self.expand(features[rows]).double()
            self.gram.addmm_(h.T, h)
            self.cross.addmm_(h.T, targets[rows])
        mirror(self.gram)
        self.weight = self._solve().T.float().contiguous()

    def _solve(self) -> Tensor:
        """(G + ridge I)^-1 Q by Cholesky; one matrix of G's size beside G itself."""
        diagonal = self.gram.diagonal().clone()
        self.gram.diagonal().add_(self.ridge)
        factor, failed = torch.linalg.cholesky_ex(self.gram)
        # a ridge below the rounding of G leaves it indefinite; LU still solves, as the original does
        solved = torch.linalg.solve(self.gram, self.cross) if failed else torch.cholesky_solve(self.cross, factor)
        self.gram.diagonal().copy_(diagonal)
        return solved

    def scores(self, features: Tensor) -> Tensor:
        """h (G + ridge I)^-1 Q: [B, C]."""
        return self.expand(features) @ self.weight.T

    def numbers(self) -> int:
        """Floating-point numbers that are carried, and the random weights, which memory must hold as well."""
        size = self.expand.dimension
        return size * (size + 1) // 2 + self.cross.numel() + self.weight.numel() + self.expand.weight.numel()

    def state_dict(self) -> dict[str, Any]:
        return {"gram": packed(self.gram), "cross": self.cross, "weight": self.weight, "ridge": self.ridge}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        device = self.gram.device
        self.gram = unpacked(state["gram"].to(device), self.expand.dimension)
        self.cross, self.weight = state["cross"].to(device).clone(), state["weight"].to(device).clone()
        self.ridge = state["ridge"]


def choose_ridge(expand: RandomFeatures, features: Tensor, targets: Tensor, default: float) -> float:
    """The ridge of RIDGES with the least squared error on the last fifth of the shuffled samples.

    Fitted on the others of this task alone, as in the original. One eigendecomposition serves all ridges: of the
    smaller of H H' [n, n] and H' H [M, M], which give the same predictions. `default` where there are too few samples.
    """
    held = int(len(features) * _HELD_OUT)
    if held == 0:
        return default
    order = torch.randperm(len(features)).to(features.device)
    fit, test = order[:-held], order[-held:]
    seen = targets.any(0)  # the columns of other classes are zero and would be predicted as zero by any ridge
    solve = _dual if len(fit) <= expand.dimension else _primal
    values, left, right = solve(expand, features[fit], features[test], targets[fit][:, seen])
    values = values.clamp(min=0)
    truth = targets[test][:, seen]
    errors = [float(((left / (values + ridge)) @ right - truth).square().mean()) for ridge in RIDGES]
    return RIDGES[min(range(len(RIDGES)), key=errors.__getitem__)]


def _dual(expand: RandomFeatures, fit: Tensor, test: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """s, A, B with predictions A (s + ridge)^-1 B, from H H' = V s V': A = H_test H' V, B = V' Y."""
    kernel = torch.zeros(len(fit), len(fit), dtype=torch.float64, device=fit.device)
    across = torch.zeros(len(test), len(fit), dtype=torch.float64, device=fit.device)
    for start in range(0, expand.dimension, _COLUMNS):
        h = expand(fit, slice(start, start + _COLUMNS)).double()
        kernel.addmm_(h, h.T)
        across.addmm_(expand(test, slice(start, start + _COLUMNS)).double(), h.T)
    values, vectors = torch.linalg.eigh(kernel)
    return values, across @ vectors, vectors.T @ targets


def _primal(expand: RandomFeatures, fit: Tensor, test: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same from H' H = V s V': A = H_test V, B = V' H' Y."""
    gram = torch.zeros(expand.dimension, expand.dimension, dtype=torch.float64, device=fit.device)
    cross = torch.zeros(expand.dimension, targets.shape[1], dtype=torch.float64, device=fit.device)
    for rows in torch.split(torch.arange(len(fit), device=fit.device), _ROWS):
        h = expand(fit[rows]).double()
        gram.addmm_(h.T, h)
        cross.addmm_(h.T, targets[rows])
    values, vectors = torch.linalg.eigh(gram)
    return values, expand(test).double() @ vectors, vectors.T @ cross


def mirror(matrix: Tensor) -> None:
    """Copy the lower triangle to the upper one, in place: a BLAS product h' h is symmetric up to rounding only."""
    for start in range(0, len(matrix), _COLUMNS):
        stop = start + _COLUMNS
        block = matrix[start:stop, start:stop]
        block.copy_(block.tril() + block.tril(-1).T)
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T


def packed(symmetric: Tensor) -> Tensor:
    """The lower triangle of [n, n], row by row: [n (n + 1) / 2]. No index arrays, which would be twice as large."""
    return torch.cat([row[: i + 1] for i, row in enumerate(symmetric)])


def unpacked(lower: Tensor, size: int) -> Tensor:
    """The symmetric matrix [size, size] of a packed lower triangle."""
    matrix = torch.zeros(size, size, dtype=lower.dtype, device=lower.device)
    start = 0
    for i in range(size):
        row = lower[start : start + i + 1]
        matrix[i, : i + 1] = row
        matrix[: i + 1, i] = row
        start += i + 1
    return matrix
