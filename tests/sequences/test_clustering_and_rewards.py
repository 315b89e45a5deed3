"""Algorithm 2 and eq. 4 to 6 against numbers worked by hand and scikit-learn's own k-NN."""

from __future__ import annotations

import collections
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from suite.metrics import AccuracyCounts
from suite.sequences.clustering import ancestral_sample, cluster_tasks, knn_nll
from suite.sequences.rewards import discounted, group_reward, learner_reward


def test_likelihood_of_a_perfect_and_of_a_hopeless_task() -> None:
    right, up = [[1.0, 0.0]] * 3, [[0.0, 1.0]] * 3
    # 2 of 2 neighbours vote for the truth: p = 2.5 / 3; 0 of 2: p = 0.5 / 3
    assert knn_nll([right, up], [right, up], neighbours=2, epsilon=0.5) == pytest.approx(-math.log(2.5 / 3))
    assert knn_nll([right, up], [up, right], neighbours=2, epsilon=0.5) == pytest.approx(-math.log(0.5 / 3))


def test_likelihood_agrees_with_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    train = [generator.normal(loc=c, size=(7, 5)) for c in range(4)]
    queries = [generator.normal(loc=c, size=(3 + c, 5)) for c in range(4)]
    labels = np.repeat(np.arange(4), 7)
    model = KNeighborsClassifier(n_neighbors=5, metric="cosine").fit(np.concatenate(train), labels)
    counts = model.predict_proba(np.concatenate(queries)) * 5
    truth = np.repeat(np.arange(4), [len(q) for q in queries])
    p = (counts[np.arange(len(truth)), truth] + 0.1) / (5 + 4 * 0.1)
    assert knn_nll(train, queries, neighbours=5, epsilon=0.1) == pytest.approx(float(-np.log(p).mean()))


def test_more_neighbours_than_images_use_all_images() -> None:
    features = [[[1.0, 0.0]], [[0.0, 1.0]]]
    assert knn_nll(features, features, neighbours=50, epsilon=1.0) == pytest.approx(-math.log(2 / 4))


@given(st.integers(0, 1000), st.integers(1, 4), st.floats(0.01, 2))
def test_likelihood_lies_between_its_bounds(seed: int, classes: int, epsilon: float) -> None:
    generator = np.random.default_rng(seed)
    train = [generator.normal(size=(4, 3)) for _ in range(classes)]
    queries = [generator.normal(size=(2, 3)) for _ in range(classes)]
    nll = knn_nll(train, queries, neighbours=3, epsilon=epsilon)
    total = 3 + classes * epsilon
    assert -math.log((3 + epsilon) / total) - 1e-12 <= nll <= -math.log(epsilon / total) + 1e-12


def test_likelihood_refuses_what_it_cannot_use() -> None:
    features = [[[1.0, 0.0]]]
    with pytest.raises(ValueError, match="same classes"):
        knn_nll(features, [], 1, 0.1)
    with pytest.raises(ValueError, match="epsilon"):
        knn_nll(features, features, 1, 0.0)
    with pytest.raises(ValueError, match="every class"):
        knn_nll([np.zeros((0, 2))], features, 1, 0.1)
    with pytest.raises(ValueError, match="finite"):
        knn_nll([[[math.nan, 0.0]]], features, 1, 0.1)


def test_clearly_apart_tasks_form_their_clusters() -> None:
    vectors = [[0.0, 0.1], [5.0, 5.0], [0.1, 0.0], [5.1, 5.0], [0.0, 9.0]]
    assert cluster_tasks(vectors, 3, seed=0) == [0, 1, 0, 1, 2]
    assert cluster_tasks(vectors, 1, seed=0) == [0] * 5


def test_no_more_clusters_than_different_tasks() -> None:
    assert cluster_tasks([[1.0], [1.0], [2.0]], 5, seed=0) == [0, 0, 1]
    assert cluster_tasks([[1.0], [1.0]], 5, seed=0) == [0, 0]


def test_clustering_refuses_nothing_to_cluster() -> None:
    with pytest.raises(ValueError, match="clustering"):
        cluster_tasks(np.zeros((0, 2)), 2, seed=0)
    with pytest.raises(ValueError, match="clustering"):
        cluster_tasks([[1.0]], 0, seed=0)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.integers(1, 25), st.integers(0, 99))
def test_candidates_are_distinct_and_as_many_as_asked(labels: list[int], wanted: int, seed: int) -> None:
    drawn = ancestral_sample(labels, wanted, seed)
    assert len(drawn) == len(set(drawn)) == min(wanted, len(labels))
    assert drawn == ancestral_sample(labels, wanted, seed)


def test_a_small_cluster_is_drawn_from_as_often_as_a_large_one() -> None:
    labels = [0] * 99 + [1]
    first = collections.Counter(labels[ancestral_sample(labels, 1, seed)[0]] for seed in range(400))
    # uniform over tasks would give the small cluster 1 % instead of half
    assert 150 < first[1] < 250


def test_an_emptied_cluster_is_left_out() -> None:
    assert sorted(ancestral_sample([0, 0, 0, 1], 4, seed=2)) == [0, 1, 2, 3]


def test_candidates_are_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least one"):
        ancestral_sample([0], 0, seed=0)


FORGETFUL = AccuracyCounts.from_rows([[8], [3, 9]], [[10], [10, 10]])
STEADY = AccuracyCounts.from_rows([[5], [5, 5]], [[10], [10, 10]])


def test_reward_is_forgetting_less_learning_accuracy() -> None:
    assert learner_reward(FORGETFUL) == pytest.approx(0.5 - 0.85)
    assert learner_reward(STEADY) == pytest.approx(0.0 - 0.5)
    assert learner_reward(FORGETFUL.first(1)) == pytest.approx(-0.8)


def test_reward_of_a_group_is_the_mean_over_its_learners() -> None:
    assert group_reward([FORGETFUL, STEADY]) == pytest.approx((-0.35 - 0.5) / 2)
    with pytest.raises(ValueError, match="at least one learner"):
        group_reward([])


def test_rewards_are_discounted_by_their_distance() -> None:
    assert discounted([1.0, 2.0, 4.0], 0.5) == pytest.approx(1 + 1 + 1)
    assert discounted([1.0, 2.0, 4.0], 1.0) == pytest.approx(7)
    assert discounted([], 1.0) == 0.0


@pytest.mark.parametrize("discount", [0.0, 1.1, -1.0])
def test_the_discount_lies_in_the_unit_interval(discount: float) -> None:
    with pytest.raises(ValueError, match="discount"):
        discounted([1.0], discount)
