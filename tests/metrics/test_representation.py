"""Probes and similarities against scikit-learn, other formulas for the same quantity, and numbers worked by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from suite.metrics import (
    SgdSettings,
    distance_to_optimal,
    knn_accuracy,
    linear_cka,
    ridge_probe,
    sgd_probe,
)

Floats = NDArray[np.float64]


def blobs(seed: int, per_class: int, classes: int = 4, width: float = 1.0) -> tuple[Floats, NDArray[np.int64]]:
    centres = 3 * np.eye(classes, 6)
    labels = np.repeat(np.arange(classes), per_class)
    generator = np.random.default_rng(seed)
    return centres[labels] + width * generator.normal(size=(len(labels), 6)), labels


def features_of(seed: int, images: int, dimensions: int) -> Floats:
    result: Floats = np.random.default_rng(seed).normal(size=(images, dimensions))
    return result


def penalised_loss(layer: Floats, points: Floats, labels: NDArray[np.int64], decay: float) -> float:
    scores = points @ layer[:-1] + layer[-1]
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return float(-logs[np.arange(len(labels)), labels].mean() + decay / 2 * np.sum(layer**2))


def test_sgd_probe_comes_to_the_minimum_of_the_penalised_cross_entropy() -> None:
    points, labels = blobs(0, 20, classes=3, width=2.0)
    how = SgdSettings(epochs=3000, batch=1000, rate=0.05, weight_decay=0.1, drops=())
    probe = sgd_probe(points, labels, 3, seed=0, settings=how)
    layer = np.concatenate([probe.weights, probe.bias[None]])
    least = penalised_loss(layer, points, labels, 0.1)
    for position in np.ndindex(layer.shape):
        for step in (-1e-3, 1e-3):
            moved = layer.copy()
            moved[position] += step
            assert penalised_loss(moved, points, labels, 0.1) > least


def test_sgd_probe_with_the_papers_recipe_separates_what_can_be_separated() -> None:
    train, test = blobs(0, 100, width=0.3), blobs(1, 50, width=0.3)
    assert sgd_probe(*train, 4, seed=0).accuracy(*test) == 1.0


def test_sgd_probe_follows_its_seed() -> None:
    points, labels = blobs(0, 30)
    few = SgdSettings(epochs=2, batch=16)
    first, again, other = (sgd_probe(points, labels, 4, seed=seed, settings=few) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.weights, again.weights)
    assert not np.array_equal(first.weights, other.weights)


def test_the_rate_drops_where_it_is_told_to() -> None:
    points, labels = blobs(0, 30)
    stopped = SgdSettings(epochs=6, drops=(2,), drop_factor=0.0)
    short = SgdSettings(epochs=2)
    np.testing.assert_array_equal(
        sgd_probe(points, labels, 4, seed=0, settings=stopped).weights,
        sgd_probe(points, labels, 4, seed=0, settings=short).weights,
    )


def test_divergence_is_reported() -> None:
    points, labels = blobs(0, 30)
    with pytest.raises(ValueError, match="diverged"):
        sgd_probe(points * 1e200, labels, 4, seed=0)


def test_ridge_probe_agrees_with_scikit_learn() -> None:
    points, labels = blobs(2, 25)
    probe = ridge_probe(points, labels, 4, penalty=0.7)
    model = Ridge(alpha=0.7).fit(points, np.eye(4)[labels])
    np.testing.assert_allclose(probe.weights, model.coef_.T, atol=1e-10)
    np.testing.assert_allclose(probe.bias, model.intercept_, atol=1e-10)


def test_ridge_probe_knows_classes_that_it_never_saw() -> None:
    points, labels = blobs(0, 20, classes=3, width=0.1)
    probe = ridge_probe(points, labels, 5)
    assert probe.weights.shape == (6, 5)
    assert probe.accuracy(points, labels) == 1.0


@pytest.mark.parametrize("neighbours", [1, 5, 20, 1000])
def test_knn_agrees_with_scikit_learn(neighbours: int) -> None:
    (train, labels), (test, truth) = blobs(0, 40, width=2.5), blobs(1, 300, width=2.5)
    model = KNeighborsClassifier(n_neighbors=min(neighbours, len(train))).fit(train, labels)
    assert knn_accuracy(train, labels, test, truth, neighbours) == pytest.approx(model.score(test, truth))


def test_knn_may_be_asked_for_classes_that_it_never_saw() -> None:
    assert knn_accuracy([[0.0]], [0], [[0.0], [0.0]], [0, 7], 3) == 0.5


@given(st.integers(0, 99), st.integers(2, 5), st.integers(1, 5))
def test_cka_agrees_with_its_kernel_form(seed: int, first: int, second: int) -> None:
    x, y = features_of(seed, 12, first), features_of(seed + 1, 12, second)
    centring = np.eye(12) - 1 / 12
    k, m = centring @ x @ x.T @ centring, centring @ y @ y.T @ centring
    expected = np.trace(k @ m) / math.sqrt(np.trace(k @ k) * np.trace(m @ m))
    assert linear_cka(x, y) == pytest.approx(expected)
    assert linear_cka(y, x) == pytest.approx(expected)
    assert -1e-12 <= linear_cka(x, y) <= 1 + 1e-12


@given(st.integers(0, 99), st.floats(0.01, 100))
def test_cka_sees_neither_rotation_nor_scale_nor_shift(seed: int, scale: float) -> None:
    x = features_of(seed, 20, 4)
    rotation, _ = np.linalg.qr(features_of(seed + 1, 4, 4))
    assert linear_cka(x, scale * x @ rotation + 5) == pytest.approx(1.0)


def test_cka_of_a_constant_representation_is_undefined() -> None:
    assert math.isnan(linear_cka(np.ones((5, 2)), features_of(0, 5, 2)))


def test_classifiers_compared_class_by_class() -> None:
    # class 0: same direction, twice as long; class 1: at a right angle; class 2: no direction
    w = [[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    best = [[1.0, 0.0, 3.0], [0.0, 1.0, 4.0]]
    found = distance_to_optimal(w, best)
    assert found.cosine == pytest.approx((1 + 0 + 0) / 3)
    assert found.l2 == pytest.approx((1 + math.sqrt(2) + 5) / 3)


def test_a_classifier_equals_itself() -> None:
    w = features_of(0, 5, 3)
    assert distance_to_optimal(w, w).cosine == pytest.approx(1.0)
    assert distance_to_optimal(w, w).l2 == 0.0


@pytest.mark.parametrize(
    ("features", "labels"),
    [
        (np.zeros((2, 3)), [0]),
        (np.zeros(3), [0, 0, 0]),
        (np.zeros((0, 3)), []),
        ([[math.nan]], [0]),
        ([[1.0]], [-1]),
        ([[1.0]], [0.5]),
        ([[1.0]], [2]),
    ],
)
def test_features_and_labels_must_match(features: Any, labels: Any) -> None:
    with pytest.raises(ValueError, match=r"features|labels"):
        ridge_probe(features, labels, 2)
    if list(labels) != [2]:
        with pytest.raises(ValueError, match=r"features|labels"):
            knn_accuracy([[1.0]], [0], features, labels)


def test_arguments_without_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="penalty"):
        ridge_probe([[1.0]], [0], 1, penalty=0.0)
    with pytest.raises(ValueError, match="neighbour"):
        knn_accuracy([[1.0]], [0], [[1.0]], [0], 0)
    with pytest.raises(ValueError, match="same images"):
        linear_cka(np.ones((3, 2)), np.ones((4, 2)))
    with pytest.raises(ValueError, match="finite"):
        linear_cka([[math.inf]], [[1.0]])
    with pytest.raises(ValueError, match="one shape"):
        distance_to_optimal(np.ones((3, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="finite"):
        distance_to_optimal([[math.nan]], [[1.0]])
