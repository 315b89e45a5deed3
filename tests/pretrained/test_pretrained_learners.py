"""What every learner on a pretrained backbone promises, whatever its method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reference.catalogue import PRETRAINED
from reference.pretrained.base import PretrainedLearner

from suite.protocol.files import read_state, write_state
from suite.protocol.messages import Manifest
from suite.protocol.state import split
from suite.sdk.server import load_class
from suite.sdk.torch import TorchLearner
from tests.pretrained.cases import POINTS
from tests.pretrained.conftest import TASKS, Bring, learn, make_task, predict

every_method = pytest.mark.parametrize("slug", sorted(PRETRAINED))


def method(slug: str) -> type[PretrainedLearner]:
    found = load_class(PRETRAINED[slug])
    assert issubclass(found, TorchLearner)
    return found  # type: ignore[return-value]


def identical(a: dict[str, Any], b: dict[str, Any]) -> bool:
    first, second = split(a), split(b)
    return (
        first.skeleton == second.skeleton
        and all(torch.equal(first.tensors[k], second.tensors[k]) for k in first.tensors)
        and all(np.array_equal(first.arrays[k], second.arrays[k]) for k in first.arrays)
    )


@every_method
def test_a_resumed_learner_goes_on_bit_for_bit(slug: str, bring: Bring, tmp_path: Path) -> None:
    whole = bring(method(slug), **POINTS[slug])
    queries = np.concatenate([t.images[::3] for t in TASKS])
    for task in TASKS:
        path = tmp_path / str(task.index)
        path.mkdir()
        resumed = bring(method(slug), **POINTS[slug])
        if task.index:
            resumed.load_state_dict(read_state(tmp_path / str(task.index - 1)))
        learn(whole, task)
        learn(resumed, task)
        write_state(resumed.state_dict(), path)
        assert identical(whole.state_dict(), resumed.state_dict())
        predictor = bring(method(slug), **POINTS[slug])
        predictor.load_state_dict(read_state(path))
        scores = predict(predictor, queries)
        assert np.array_equal(scores, predict(whole, queries))
        assert scores.shape == (len(queries), whole.seen)
        assert np.isfinite(scores).all()


@every_method
def test_a_used_learner_can_become_another(slug: str, bring: Bring) -> None:
    learner = bring(method(slug), **POINTS[slug])
    learn(learner, TASKS[0])
    early, before = split(learner.state_dict()), predict(learner, TASKS[0].images)
    state = learner.state_dict()
    state = {**state, "network": {k: v.clone() for k, v in state["network"].items()}}
    learn(learner, TASKS[1])
    learner.load_state_dict(state)
    assert split(learner.state_dict()).skeleton == early.skeleton
    assert np.array_equal(predict(learner, TASKS[0].images), before)


@every_method
def test_a_score_depends_on_its_image_only(slug: str, bring: Bring) -> None:
    learner = bring(method(slug), **POINTS[slug])
    for task in TASKS:
        learn(learner, task)
    images = np.concatenate([t.images for t in TASKS])
    order = np.random.default_rng(1).permutation(len(images))
    together, alone = predict(learner, images), predict(learner, images[order[:7]])
    np.testing.assert_allclose(together[order[:7]], alone, rtol=1e-4, atol=1e-5)


@every_method
def test_classes_may_come_again(slug: str, bring: Bring) -> None:
    learner = bring(method(slug), **POINTS[slug])
    learn(learner, TASKS[0])
    learn(learner, make_task(1, [1, 3]))
    assert predict(learner, TASKS[0].images).shape == (len(TASKS[0].images), 4)


@every_method
def test_one_class_at_a_time(slug: str, bring: Bring) -> None:
    learner = bring(method(slug), **POINTS[slug])
    for index in range(2):
        learn(learner, make_task(index, [index], each=2))
    assert np.isfinite(predict(learner, TASKS[0].images)).all()


@every_method
def test_it_counts_what_it_stores_and_trains(slug: str, bring: Bring) -> None:
    learner = bring(method(slug), **POINTS[slug])
    learn(learner, TASKS[0])
    result = learner.report()
    held = split(learner.state_dict())
    carried = sum(t.numel() for t in held.tensors.values() if t.is_floating_point())
    carried += sum(a.size for a in held.arrays.values() if a.dtype.kind == "f")
    # a learner that trains its own ViT does not count it: it stands in the place of the mounted one
    assert result.stored_parameters + result.metrics.get("encoder_parameters", 0) >= carried
    assert (result.trainable_parameters > 0) == (slug != "simplecil")


@every_method
def test_it_embeds_and_describes_itself(slug: str, bring: Bring) -> None:
    found = method(slug)
    assert Manifest.model_validate(found.manifest().model_dump()) == found.manifest()
    learner = bring(found, **POINTS[slug])
    learn(learner, TASKS[0])
    features = learner.embed(TASKS[0].images)
    assert features.dtype == np.float32
    assert features.shape[0] == len(TASKS[0].images)


@every_method
def test_its_points_lie_in_its_space(slug: str) -> None:
    method(slug).space.check_names(POINTS[slug] or {})
