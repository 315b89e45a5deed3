"""RanPAC against its closed form in numpy, float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference.pretrained import ridge
from reference.pretrained.ranpac import RanPAC
from reference.pretrained.ridge import RIDGES, RandomFeatures, RidgeClassifier, choose_ridge, packed, unpacked

from tests.pretrained.cases import POINTS
from tests.pretrained.conftest import TASKS, Bring, learn, make_task, predict

CPU = torch.device("cpu")


def expanded(features: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(features.astype(np.float32) @ weight, 0), np.float64)


def solve(h: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    return np.asarray(np.linalg.solve(h.T @ h + penalty * np.eye(h.shape[1]), h.T @ y))


@pytest.mark.parametrize("count", [25, 200], ids=["fewer samples than features", "more samples than features"])
def test_the_ridge_is_the_best_of_all_on_the_last_fifth(count: int) -> None:
    torch.manual_seed(3)
    expand = RandomFeatures(8, 60, seed=1, device=CPU)
    features, labels = torch.randn(count, 8), torch.arange(count) % 3
    features[:, :3] += 2 * torch.eye(3)[labels]
    targets = torch.eye(5)[labels].double()
    torch.manual_seed(7)
    chosen = choose_ridge(expand, features, targets, 1.0)

    torch.manual_seed(7)
    order = torch.randperm(count).numpy()
    h, y = expanded(features.numpy(), expand.weight.numpy())[order], targets.numpy()[order, :3]
    cut = count - int(count * 0.2)
    errors = {}
    for penalty in RIDGES[4:]:  # below, the normal equations cannot be solved in float64
        errors[penalty] = np.mean((h[cut:] @ solve(h[:cut], y[:cut], penalty) - y[cut:]) ** 2)
    assert chosen == min(errors, key=errors.__getitem__)


@pytest.mark.parametrize("penalty", [1e-2, 1.0, 1e4])
def test_both_eigendecompositions_predict_the_same(penalty: float) -> None:
    torch.manual_seed(0)
    expand = RandomFeatures(6, 30, seed=2, device=CPU)
    fit, test, targets = torch.randn(50, 6), torch.randn(9, 6), torch.randn(50, 4).double()
    expected = expanded(test.numpy(), expand.weight.numpy()) @ solve(
        expanded(fit.numpy(), expand.weight.numpy()), targets.numpy(), penalty
    )
    for way in (ridge._dual, ridge._primal):
        values, left, right = way(expand, fit, test, targets)
        np.testing.assert_allclose((left / (values.clamp(min=0) + penalty)) @ right, expected, atol=1e-8)


def test_scores_are_ridge_regression_on_all_tasks_together(bring: Bring) -> None:
    learner = bring(RanPAC, **POINTS["ranpac"])
    assert isinstance(learner, RanPAC)
    for task in TASKS:
        learn(learner, task)
    weight = learner.ridge.expand.weight.numpy()
    h = expanded(np.concatenate([learner.embed(t.images) for t in TASKS]), weight)
    y = np.eye(6)[np.concatenate([t.labels for t in TASKS])]
    queries = make_task(9, [1, 3, 4], each=4).images
    expected = expanded(learner.embed(queries), weight) @ solve(h, y, learner.ridge.ridge)
    np.testing.assert_allclose(predict(learner, queries), expected, rtol=1e-3, atol=1e-4)


def test_columns_grow_without_moving_old_sums() -> None:
    classifier = RidgeClassifier(RandomFeatures(4, 12, seed=0, device=CPU), CPU)
    torch.manual_seed(0)
    classifier.grow(2)
    classifier.learn(torch.randn(10, 4), torch.arange(10) % 2)
    before = classifier.cross.clone()
    classifier.grow(5)
    classifier.learn(torch.randn(6, 4), torch.arange(6) % 3 + 2)
    assert torch.equal(classifier.cross[:, :2], before)
    assert classifier.weight.shape == (5, 12)


def test_a_packed_matrix_comes_back_as_it_was() -> None:
    square = torch.randn(7, 7, dtype=torch.float64)
    symmetric = square + square.T
    assert len(packed(symmetric)) == 28
    assert torch.equal(unpacked(packed(symmetric), 7), symmetric)


def test_the_gram_matrix_is_exactly_symmetric() -> None:
    matrix = torch.randn(2500, 2500)
    expected = np.tril(matrix.numpy()) + np.tril(matrix.numpy(), -1).T
    ridge.mirror(matrix)
    assert np.array_equal(matrix.numpy(), expected)


def test_prompts_can_tune_instead_of_adapters(bring: Bring) -> None:
    point = {k: v for k, v in POINTS["ranpac"].items() if k != "ffn_num"} | {"petl": "prompt", "prompt_tokens": 3}
    learner = bring(RanPAC, **point)
    learn(learner, TASKS[0])
    assert learner.report().trainable_parameters == 3 * learner.width + 3 * learner.width + 1
