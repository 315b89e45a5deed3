"""Quality, change and use of a learned representation (Cha et al., representation learning perspective, section 3.2).

All functions take features that were computed before: float [N, D]. In-domain evaluation, Linear(t) and k-NN(t), fits
on the training images of ALL tasks with the encoder of step t and tests on all test images; out-domain evaluation,
CLS(t), is the mean accuracy of the same linear probe over data sets that were never learned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suite.metrics.draws import random_bits, random_orders

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

_QUERIES_AT_ONCE = 512  # bounds the distance matrix of the k-NN probe


@dataclass(frozen=True, eq=False)
class LinearProbe:
    """A linear classifier: scores = features @ weights + bias; `weights` float64 [D, C], `bias` float64 [C]."""

    weights: Floats
    bias: Floats

    def accuracy(self, features: ArrayLike, labels: ArrayLike) -> float:
        """Share of [N, D] features whose highest score is that of their label (the lower class wins a tie)."""
        points, truth = _labelled(features, labels)
        return float(np.mean(np.argmax(points @ self.weights + self.bias, axis=1) == truth))


@dataclass(frozen=True)
class SgdSettings:
    """How the linear probe is trained. Defaults: appendix A of the paper, whose rate would drop only at 40 and 80."""

    epochs: int = 30
    batch: int = 256
    rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    drops: tuple[int, ...] = (40, 80)
    drop_factor: float = 0.1


def sgd_probe(
    features: ArrayLike, labels: ArrayLike, classes: int, *, seed: int, settings: SgdSettings | None = None
) -> LinearProbe:
    """Linear(t): a softmax layer trained with cross-entropy by SGD with momentum on frozen features.

    Weight decay acts on weights and biases, as in the paper's framework. ValueError when the training diverges, which
    unscaled features may cause at this rate.
    """
    how = settings or SgdSettings()
    points, truth = _labelled(features, labels, classes)
    inputs = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    bound = 1 / math.sqrt(points.shape[1])
    start = random_bits(seed, inputs.shape[1] * classes) / 2.0**64
    layer = (2 * start.reshape(inputs.shape[1], classes) - 1) * bound
    with np.errstate(over="ignore", invalid="ignore"):  # divergence is reported once, at the end
        layer = _descend(layer, inputs, truth, how, random_orders(seed + 1, how.epochs, len(points)))
    if not np.all(np.isfinite(layer)):
        raise ValueError("the linear probe diverged: scale the features or lower the rate")
    return LinearProbe(layer[:-1], layer[-1])


def ridge_probe(features: ArrayLike, labels: ArrayLike, classes: int, *, penalty: float = 1.0) -> LinearProbe:
    """Least squares on one-hot labels with an L2 penalty on the weights: in closed form, hence without a seed.

    Not the paper's probe; quicker, and equal on every run. Minimises |Y - XW - b|^2 + penalty |W|^2.
    """
    if penalty <= 0:
        raise ValueError("the penalty must be positive")
    points, truth = _labelled(features, labels, classes)
    targets = np.eye(classes)[truth]
    centre, mean = points.mean(axis=0), targets.mean(axis=0)
    centred = points - centre
    gram = centred.T @ centred + penalty * np.eye(points.shape[1])
    weights: Floats = np.linalg.solve(gram, centred.T @ (targets - mean))
    return LinearProbe(weights, mean - centre @ weights)


def knn_accuracy(
    train: ArrayLike, train_labels: ArrayLike, test: ArrayLike, test_labels: ArrayLike, neighbours: int = 20
) -> float:
    """k-NN(t): accuracy of a majority vote among the nearest training images by Euclidean distance (k = 20 there).

    The lower class wins a tie of votes, as in scikit-learn. k is at most the number of training images.
    """
    reference, known = _labelled(train, train_labels)
    queries, truth = _labelled(test, test_labels)
    if neighbours < 1:
        raise ValueError("at least one neighbour must vote")
    k, classes = min(neighbours, len(reference)), int(known.max()) + 1
    squares = np.sum(reference**2, axis=1)
    right = 0
    for first in range(0, len(queries), _QUERIES_AT_ONCE):
        asked = queries[first : first + _QUERIES_AT_ONCE]
        distances = squares - 2 * asked @ reference.T  # less |query|^2, which does not change the order
        voters = known[np.argpartition(distances, k - 1, axis=1)[:, :k]]
        votes = np.apply_along_axis(np.bincount, 1, voters, minlength=classes)
        right += int(np.sum(np.argmax(votes, axis=1) == truth[first : first + len(asked)]))
    return right / len(queries)


def linear_cka(first: ArrayLike, second: ArrayLike) -> float:
    """CKA(t1, t2): similarity in [0, 1] of two representations [N, D1], [N, D2] of the same images (linear kernel).

    Invariant to rotation and to scaling of either. NaN when one of them is constant.
    """
    x, y = _centred(first), _centred(second)
    if len(x) != len(y):
        raise ValueError(f"both representations must be of the same images, not of {len(x)} and {len(y)}")
    shared = float(np.linalg.norm(x.T @ y)) ** 2
    own = float(np.linalg.norm(x.T @ x)) * float(np.linalg.norm(y.T @ y))
    return shared / own if own > 0 else math.nan


@dataclass(frozen=True)
class ClassifierDistance:
    """How far a classifier is from the optimal one for its representation, mean over classes."""

    cosine: float
    l2: float


def distance_to_optimal(weights: ArrayLike, optimal: ArrayLike) -> ClassifierDistance:
    """CosSim and Dist between a classifier's weights [D, C] and those of the probe trained on the same features.

    CosSim = mean over classes of cos(W_i, W*_i), Dist = mean over classes of |W_i - W*_i|. A class whose weights are
    all zero has no direction and counts as cosine 0.
    """
    w, best = np.asarray(weights, dtype=np.float64), np.asarray(optimal, dtype=np.float64)
    if w.ndim != 2 or w.shape != best.shape or not w.size:
        raise ValueError(f"both classifiers must be of one shape [D, C], not {w.shape} and {best.shape}")
    if not (np.all(np.isfinite(w)) and np.all(np.isfinite(best))):
        raise ValueError("weights must be finite")
    norms = np.linalg.norm(w, axis=0) * np.linalg.norm(best, axis=0)
    cosines = np.divide(np.sum(w * best, axis=0), norms, out=np.zeros(w.shape[1]), where=norms > 0)
    return ClassifierDistance(float(cosines.mean()), float(np.linalg.norm(w - best, axis=0).mean()))


def _descend(layer: Floats, inputs: Floats, truth: Labels, how: SgdSettings, orders: NDArray[np.intp]) -> Floats:
    velocity, rate = np.zeros_like(layer), how.rate
    for epoch, order in enumerate(orders):
        rate *= how.drop_factor ** how.drops.count(epoch)
        for first in range(0, len(order), how.batch):
            chosen = order[first : first + how.batch]
            gradient = _gradient(layer, inputs[chosen], truth[chosen]) + how.weight_decay * layer
            velocity = how.momentum * velocity + gradient
            layer = layer - rate * velocity
    return layer


def _gradient(layer: Floats, inputs: Floats, truth: Labels) -> Floats:
    """Gradient of the mean cross-entropy with respect to `layer`."""
    scores = inputs @ layer
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(truth)), truth] -= 1
    result: Floats = inputs.T @ shares / len(truth)
    return result


def _labelled(features: ArrayLike, labels: ArrayLike, classes: int | None = None) -> tuple[Floats, Labels]:
    points, truth = np.asarray(features, dtype=np.float64), np.asarray(labels)
    if points.ndim != 2 or not points.size or truth.shape != (len(points),):
        raise ValueError(f"features [N, D] and labels [N] do not match: {points.shape} and {truth.shape}")
    if not np.all(np.isfinite(points)):
        raise ValueError("features must be finite")
    if truth.dtype.kind not in "iu" or truth.min() < 0 or (classes is not None and truth.max() >= classes):
        raise ValueError("labels must be class numbers from 0")
    return points, truth.astype(np.int64)


def _centred(features: ArrayLike) -> Floats:
    points = np.asarray(features, dtype=np.float64)
    if points.ndim != 2 or not points.size or not np.all(np.isfinite(points)):
        raise ValueError("a representation must be finite and of shape [N, D]")
    result: Floats = points - points.mean(axis=0)
    return result
