"""Eq. 3 and algorithm 1 against numbers worked by hand and a direct transcription in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from suite.sequences.potentials import class_potentials, cosine_similarities, prototype
from suite.sequences.sampling import distinct_tasks, greedy_tasks

Floats = NDArray[np.float64]


def potentials_of(seed: int, classes: int, zeros: float = 0.0) -> Floats:
    generator = np.random.default_rng(seed)
    upper = np.triu(generator.random((classes, classes)), 1)
    upper[generator.random(upper.shape) < zeros] = 0.0
    result: Floats = upper + upper.T
    return result


def greedy_by_the_book(potentials: Floats, first: int, size: int) -> list[int]:
    """Algorithm 1 for one task, with products rather than logarithms."""
    task = [first]
    while len(task) < size:
        best, best_product = -1, -1.0
        for candidate in range(len(potentials)):
            if candidate not in task:
                product = math.prod(float(potentials[candidate, q]) for q in task)
                if product > best_product:
                    best, best_product = candidate, product
        task.append(best)
    return task


def test_a_prototype_is_the_mean_feature() -> None:
    np.testing.assert_allclose(prototype([[1.0, 2.0], [3.0, 6.0]]), [2.0, 4.0])


@pytest.mark.parametrize("features", [np.zeros((0, 3)), np.zeros(3), [[math.nan, 1.0]], [[math.inf, 1.0]]])
def test_a_prototype_needs_finite_features(features: object) -> None:
    with pytest.raises(ValueError, match="features"):
        prototype(features)  # type: ignore[arg-type]


def test_cosine_similarity_ignores_length_and_gives_zero_without_direction() -> None:
    similarities = cosine_similarities([[2.0, 0.0], [0.0, 0.5], [1.0, 1.0], [0.0, 0.0]])
    half = math.sqrt(0.5)
    expected: list[list[float]] = [[1, 0, half, 0], [0, 1, half, 0], [half, half, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(similarities, expected, atol=1e-12)
    np.testing.assert_allclose(cosine_similarities([[1.0, 0.0]], [[1.0, 1.0], [-3.0, 0.0]]), [[half, -1.0]])


def test_potentials_are_scaled_over_pairs_of_different_classes() -> None:
    # off-diagonal similarities 0.2, 0.6, 1.0 -> 0, 0.5, 1; with the diagonal in, 0.6 would map elsewhere
    similarities = np.array([[1.0, 0.2, 0.6], [0.2, 1.0, 1.0], [0.6, 1.0, 1.0]])
    expected = [[0.0, 0.0, 0.5], [0.0, 0.0, 1.0], [0.5, 1.0, 0.0]]
    np.testing.assert_allclose(class_potentials([similarities]), expected)


def test_potentials_average_over_learners_after_scaling_each() -> None:
    first = np.array([[1.0, 0.2, 0.6], [0.2, 1.0, 1.0], [0.6, 1.0, 1.0]])
    second = np.array([[1.0, 0.9, 0.5], [0.9, 1.0, 0.5], [0.5, 0.5, 1.0]])
    expected = [[0.0, 0.5, 0.25], [0.5, 0.0, 0.5], [0.25, 0.5, 0.0]]
    np.testing.assert_allclose(class_potentials([first, second]), expected)


def test_equally_similar_classes_have_equal_potentials() -> None:
    np.testing.assert_array_equal(class_potentials([np.full((3, 3), 0.4)]), 1.0 - np.eye(3))
    np.testing.assert_array_equal(class_potentials([np.ones((1, 1))]), [[0.0]])


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 4))
def test_potentials_are_symmetric_and_in_the_unit_interval(seed: int, classes: int, learners: int) -> None:
    generator = np.random.default_rng(seed)
    matrices = [cosine_similarities(generator.normal(size=(classes, 4))) for _ in range(learners)]
    potentials = class_potentials(matrices)
    np.testing.assert_allclose(potentials, potentials.T)
    assert potentials.min() >= 0
    assert potentials.max() <= 1


def test_potentials_refuse_learners_that_disagree_on_the_classes() -> None:
    with pytest.raises(ValueError, match="one size"):
        class_potentials([np.ones((2, 2)), np.ones((3, 3))])
    with pytest.raises(ValueError, match="at least one learner"):
        class_potentials([])


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(2, 14), st.sampled_from([0.0, 0.3, 0.9]), st.data())
def test_greedy_sampling_equals_the_algorithm_box(seed: int, classes: int, zeros: float, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, classes))
    potentials = potentials_of(seed, classes, zeros)
    tasks = greedy_tasks(potentials, size, classes, seed)
    assert sorted(tasks[:, 0].tolist()) == list(range(classes))
    for task in tasks.tolist():
        assert task == greedy_by_the_book(potentials, task[0], size)


def test_products_of_many_small_potentials_do_not_vanish() -> None:
    # 0.001 ** 199 underflows to zero; its logarithm does not, and class 399 stays the best partner
    potentials = np.full((400, 400), 0.001)
    potentials[399, :] = potentials[:, 399] = 0.002
    np.fill_diagonal(potentials, 0.0)
    tasks = greedy_tasks(potentials, 200, 3, seed=1)
    assert all(399 in task[:2] for task in tasks.tolist())


def test_first_classes_follow_the_seed_alone() -> None:
    def firsts(size: int, seed: int) -> list[int]:
        starts: list[int] = greedy_tasks(potentials_of(0, 9), size, 9, seed)[:, 0].tolist()
        return starts

    assert firsts(1, 3) == firsts(4, 3)
    assert len({tuple(firsts(1, seed)) for seed in range(5)}) == 5


def test_fewer_classes_than_tasks_start_once_each() -> None:
    assert greedy_tasks(potentials_of(1, 4), 2, 100, seed=0).shape == (4, 2)


@pytest.mark.parametrize(("size", "tasks"), [(0, 1), (5, 1), (2, 0)])
def test_impossible_draws_are_refused(size: int, tasks: int) -> None:
    with pytest.raises(ValueError, match="drawn"):
        greedy_tasks(potentials_of(0, 4), size, tasks, seed=0)


def test_equal_sets_of_classes_are_one_task() -> None:
    rows = np.array([[0, 1], [2, 0], [1, 0]])
    assert distinct_tasks(rows, np.array([30, 10, 20])) == [(10, 30), (20, 30)]
