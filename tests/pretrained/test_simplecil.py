from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from reference.pretrained.simplecil import SimpleCIL

from suite.protocol.errors import SuiteError
from suite.sdk import Context
from tests.pretrained.conftest import TASKS, Bring, learn, make_setup, make_task, predict


def closed_form(features: np.ndarray, labels: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Cosines to class means, float64."""
    means = np.stack([features[labels == c].mean(0) for c in np.unique(labels)])
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (queries, means)]
    return np.asarray(unit[0] @ unit[1].T)


def test_scores_are_cosines_to_class_means(bring: Bring) -> None:
    learner = bring(SimpleCIL)
    for task in TASKS:
        learn(learner, task)
    queries = make_task(9, [0, 3, 5], each=4).images[::2]
    features = np.concatenate([learner.embed(t.images) for t in TASKS]).astype(np.float64)
    labels = np.concatenate([t.labels for t in TASKS])
    expected = closed_form(features, labels, learner.embed(queries).astype(np.float64))
    np.testing.assert_allclose(predict(learner, queries), expected, atol=1e-6)


def test_classes_that_come_again_refine_their_prototype(bring: Bring) -> None:
    whole, parts = bring(SimpleCIL), bring(SimpleCIL)
    task = TASKS[0]
    learn(whole, task)
    half = np.arange(len(task.labels)) % 2 == 0
    for index, rows in enumerate((half, ~half)):
        learn(parts, type(task)(index, task.classes, task.images[rows], task.labels[rows]))
    np.testing.assert_allclose(predict(parts, task.images), predict(whole, task.images), atol=1e-6)


def test_classifier_and_embedding_give_the_scores_up_to_the_length_of_the_features(bring: Bring) -> None:
    learner = bring(SimpleCIL)
    learn(learner, TASKS[0])
    features = learner.embed(TASKS[0].images)
    assert isinstance(learner, SimpleCIL)
    product = features @ learner.classifier() / np.linalg.norm(features, axis=1, keepdims=True)
    np.testing.assert_allclose(predict(learner, TASKS[0].images), product, atol=1e-5)


def test_without_a_backbone_it_says_what_to_do() -> None:
    learner = SimpleCIL(Context(make_setup(None)))
    with pytest.raises(SuiteError, match=r"needs a pretrained backbone.*Choose a track"):
        learner.setup()


def test_weights_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(b"no weights")
    with pytest.raises(SuiteError, match="cannot be read"):
        SimpleCIL(Context(make_setup(path))).setup()


def test_the_backbone_is_frozen_and_not_in_the_state(bring: Bring) -> None:
    learner = bring(SimpleCIL)
    learn(learner, TASKS[0])
    assert not any(p.requires_grad for p in learner.backbone.parameters())
    held = sum(v.numel() for v in learner.state_dict()["network"].values() if isinstance(v, torch.Tensor))
    assert held == 3 * learner.width + 3
    assert learner.report().stored_parameters == 3 * learner.width
