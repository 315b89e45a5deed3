"""Functional task clustering (CLDyB algorithm 2): few candidates that challenge all learners alike.

A task is described by how badly each learner's features serve it: the negative log-likelihood of held-out images
under a k-NN classifier fitted on training images. Tasks are clustered by these M numbers, and candidates are drawn
cluster first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suite.errors import UsageError
from suite.seeds import Counter, derive_seed

Floats = NDArray[np.float64]

_KMEANS_STARTS = 10


def knn_nll(train: Sequence[ArrayLike], queries: Sequence[ArrayLike], neighbours: int, epsilon: float) -> float:
    """Mean negative log-likelihood of one task under a k-NN classifier, in nats (algorithm 2, line 6).

    `train`, `queries`: per class of the task, features [N_c, D]. Neighbours are the nearest by cosine similarity (as in
    eq. 3). p(y|x) = (n_y + e) / (k + K e), n_y of the k neighbours being of class y: without e a class that has no
    neighbour would make the likelihood of the whole task zero. k is at most the number of training images.
    """
    if len(train) != len(queries) or not train:
        raise ValueError("training and held-out features are needed for the same classes")
    if neighbours < 1 or epsilon <= 0:
        raise ValueError("neighbours must be at least 1 and epsilon above 0")
    reference, labels = _stack(train)
    asked, truth = _stack(queries)
    k = min(neighbours, len(reference))
    nearest = np.argpartition(-(asked @ reference.T), k - 1, axis=1)[:, :k]
    votes = np.sum(labels[nearest] == truth[:, None], axis=1)
    return float(-np.mean(np.log((votes + epsilon) / (k + len(train) * epsilon))))


def cluster_tasks(vectors: ArrayLike, n_clusters: int, seed: int) -> list[int]:
    """k-means (scikit-learn) of functional vectors [J, M]: a cluster number per task, numbered by first appearance.

    There are at most as many clusters as there are different vectors. UsageError when scikit-learn is not installed.
    """
    points = np.asarray(vectors, dtype=np.float64)
    if points.ndim != 2 or not len(points) or n_clusters < 1:
        raise ValueError(f"clustering needs vectors [J >= 1, M] and at least one cluster, not {points.shape}")
    clusters = min(n_clusters, len(np.unique(points, axis=0)))
    if clusters == 1:
        return [0] * len(points)
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        message, remedy = "Functional clustering needs scikit-learn.", "Install the extra 'data'."
        raise UsageError(message, remedy) from None
    state = derive_seed("k-means", seed) % 2**32
    labels = KMeans(n_clusters=clusters, n_init=_KMEANS_STARTS, random_state=state).fit(points).labels_
    names: dict[int, int] = {}
    return [names.setdefault(int(label), len(names)) for label in labels]


def ancestral_sample(labels: Sequence[int], n_candidates: int, seed: int) -> list[int]:
    """Draw tasks without replacement: a cluster uniformly, then a task in it uniformly (algorithm 2, lines 13 to 17).

    A cluster that has been emptied is no longer drawn from. Returns positions in `labels`, in order of drawing, all
    of them when `n_candidates` is at least their number.
    """
    if n_candidates < 1:
        raise ValueError("at least one candidate must be drawn")
    members: dict[int, list[int]] = {}
    for position, label in enumerate(labels):
        members.setdefault(label, []).append(position)
    clusters = list(members.values())
    counter = Counter(derive_seed("ancestral sampling", seed))
    drawn: list[int] = []
    while clusters and len(drawn) < n_candidates:
        chosen = counter.below(len(clusters))
        drawn.append(clusters[chosen].pop(counter.below(len(clusters[chosen]))))
        if not clusters[chosen]:
            del clusters[chosen]
    return drawn


def _stack(per_class: Sequence[ArrayLike]) -> tuple[Floats, NDArray[np.int64]]:
    arrays = [np.asarray(features, dtype=np.float64) for features in per_class]
    if any(array.ndim != 2 or not len(array) for array in arrays):
        raise ValueError("every class needs features of shape [N >= 1, D]")
    stacked = np.concatenate(arrays)
    if not np.all(np.isfinite(stacked)):
        raise ValueError("features must be finite")
    norms = np.linalg.norm(stacked, axis=1, keepdims=True)
    directions: Floats = np.divide(stacked, norms, out=np.zeros_like(stacked), where=norms > 0)
    return directions, np.repeat(np.arange(len(arrays)), [len(array) for array in arrays])
