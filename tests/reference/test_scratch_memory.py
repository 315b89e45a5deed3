"""Exemplar memory: herding, budgets, order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.memory import DEFAULT_PER_CLASS, ExemplarMemory, herding, joined

from suite.protocol.messages import ExemplarBudget
from tests.reference.cases import learner, make_task


def distances(x: np.ndarray, chosen: list[int]) -> dict[int, float]:
    """||mean - (candidate + sum of chosen) / k|| for every candidate left: iCaRL, algorithm 4, as it is printed."""
    k = len(chosen) + 1
    left = (i for i in range(len(x)) if i not in chosen)
    return {i: float(np.linalg.norm(x.mean(0) - (x[i] + sum(x[j] for j in chosen)) / k)) for i in left}


def is_herding(x: np.ndarray, chosen: list[int]) -> bool:
    """Each choice is among the nearest of those left (candidates may tie)."""
    steps = [(distances(x, chosen[:k]), item) for k, item in enumerate(chosen)]
    return all(found[item] <= min(found.values()) + 1e-6 for found, item in steps)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 10**6))
def test_herding_follows_the_printed_algorithm(n: int, d: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    chosen = herding(x, n)
    assert sorted(chosen) == list(range(n))
    assert is_herding(x, chosen)


def test_herding_takes_no_more_than_there_are() -> None:
    assert sorted(herding(np.eye(3), 10)) == [0, 1, 2]


def test_the_prefix_of_a_herding_is_the_herding_of_the_prefix_length() -> None:
    x = np.random.default_rng(1).normal(size=(30, 4))
    assert herding(x, 7) == herding(x, 20)[:7]


@pytest.mark.parametrize(
    ("budget", "classes", "expected"),
    [
        (ExemplarBudget(total=1000), 5, 200),
        (ExemplarBudget(total=1000), 15, 66),
        (ExemplarBudget(per_class=20), 50, 20),
        (ExemplarBudget(total=100, per_class=20), 2, 20),
        (ExemplarBudget(total=100, per_class=20), 50, 2),
        (ExemplarBudget(total=3), 5, 0),
        (ExemplarBudget(), 5, DEFAULT_PER_CLASS),
    ],
)
def test_the_quota_is_the_smaller_of_both_bounds(budget: ExemplarBudget, classes: int, expected: int) -> None:
    assert ExemplarMemory(budget).quota(classes) == expected


def images(n: int, fill: int = 0) -> np.ndarray:
    return np.arange(n, dtype=np.uint8).reshape(n, 1, 1, 1) + np.uint8(fill)


def test_shrinking_keeps_the_first_chosen() -> None:
    memory = ExemplarMemory(ExemplarBudget(total=10))
    memory.put(3, images(6))
    memory.put(1, images(4, 100))
    memory.reduce(2)
    kept, labels = memory.arrays()
    assert kept.ravel().tolist() == [100, 101, 0, 1]
    assert labels.tolist() == [1, 1, 3, 3]
    memory.reduce(0)
    assert len(memory) == 0


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.integers(0, 9), st.integers(1, 5), max_size=5))
def test_the_state_brings_back_every_image_in_order(sizes: dict[int, int]) -> None:
    memory, copy = ExemplarMemory(ExemplarBudget(total=9)), ExemplarMemory(ExemplarBudget(total=9))
    for label, size in sizes.items():
        memory.put(label, images(size, 10 * label))
    copy.load_state_dict(memory.state_dict())
    assert copy.counts() == memory.counts() == dict(sorted(sizes.items()))
    for label in sizes:
        np.testing.assert_array_equal(copy.of_class(label), memory.of_class(label))


def test_joining_leaves_empty_parts_out() -> None:
    empty = np.empty((0, 0, 0, 0), np.uint8), np.empty(0, np.int64)
    full = images(3), np.array([0, 0, 1])
    both = joined(full, empty)
    assert both[0].shape == (3, 1, 1, 1)
    assert len(joined(full, full)[1]) == 6


def test_old_exemplars_keep_their_order_and_new_ones_are_herded_with_the_trained_network() -> None:
    model, first, second = learner("replay"), make_task(0, [0, 1]), make_task(1, [2, 3, 4])
    model.learn(first)
    before = {c: model.memory.of_class(c).copy() for c in (0, 1)}
    model.learn(second)
    quota = 25 // 5
    for c in (0, 1):
        np.testing.assert_array_equal(model.memory.of_class(c), before[c][:quota])
    own = second.images[second.labels == 3]
    features = model.embed(own)
    features = features / np.linalg.norm(features, axis=1, keepdims=True)
    kept = [int(np.flatnonzero((own == image).all((1, 2, 3)))[0]) for image in model.memory.of_class(3)]
    assert len(kept) == quota
    assert is_herding(features.astype(np.float64), kept)


@pytest.mark.parametrize(("slug", "same"), [("ssil", True), ("ft_exemplars", False)])
def test_ss_il_keeps_the_first_images_and_fine_tuning_random_ones(slug: str, same: bool) -> None:
    model, task = learner(slug), make_task(0, [0])
    model.seen = 1
    assert (model.select(task.images, 4) == [0, 1, 2, 3]) is same
    assert len(set(model.select(task.images, 4))) == 4


def test_the_class_mean_of_exemplars_is_normalised_twice_and_the_nearest_wins() -> None:
    model = learner("icarl")
    model.learn(make_task(0, [0, 1]))
    items = make_task(5, [0]).images
    features = model.embed(items).astype(np.float64)
    scores = model.predict(items)
    for c in (0, 1):
        x = model.embed(model.memory.of_class(c)).astype(np.float64)
        mean = (x / np.linalg.norm(x, axis=1, keepdims=True)).mean(0)
        mean /= np.linalg.norm(mean)
        for i, f in enumerate(features):
            assert scores[i, c] == pytest.approx(-np.sum((f / np.linalg.norm(f) - mean) ** 2), rel=1e-3, abs=1e-5)
