"""Every method through the protocol: the state carries all, nothing else, and what is reported is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reference.catalogue import SCRATCH

from suite.metrics.memory import memory_b4
from suite.protocol import read_state, summarise_state
from suite.protocol.state import split
from suite.sdk import DivergedError, Session
from tests.reference.cases import (
    DIVERGED,
    PER_CLASS,
    SIDE,
    SIZES,
    TOTAL_EXEMPLARS,
    WITHOUT_MEMORY,
    Strict,
    answer,
    ask,
    fresh_session,
    items,
    learner,
    learner_class,
    make_task,
    run_continuing,
    run_strict,
    setup,
    tasks,
)

SLUGS = sorted(SCRATCH)
BACKBONE = 463_504
NORMS = 2_272 // 2
"""BatchNorm channels of ResNet-32: 11 layers of 16, 10 of 32, 10 of 64."""
GENERAL, SPECIAL = 112_016, 351_488
"""Parameters of its stem and first two stages, and of its last stage."""


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Strict trials by slug, run once."""
    done: dict[str, Strict] = {}

    def of(slug: str) -> Strict:
        if slug not in done:
            done[slug] = run_strict(slug, tmp_path_factory.mktemp(slug))
        return done[slug]

    return of


def seen_after(task: int) -> int:
    return sum(SIZES[: task + 1])


@pytest.mark.parametrize("slug", SLUGS)
def test_a_trial_over_saved_states_equals_one_that_is_never_saved_bit_by_bit(slug: str, trials: Any) -> None:
    model = run_continuing(slug)
    kept, carried = split(model.state_dict()), split(read_state(trials(slug).states[-1]))
    assert kept.skeleton == carried.skeleton
    for name, tensor in kept.tensors.items():
        assert torch.equal(tensor, carried.tensors[name]), name
    for name, array in kept.arrays.items():
        np.testing.assert_array_equal(array, carried.arrays[name], err_msg=name)
    np.testing.assert_array_equal(np.float32(model.predict(items())), trials(slug).scores[-1])


@pytest.mark.parametrize("slug", SLUGS)
def test_scores_of_an_item_do_not_depend_on_its_company(slug: str, trials: Any) -> None:
    model = learner(slug)
    model.load_state_dict(read_state(trials(slug).states[-1]))
    alone = np.concatenate([model.predict(items()[i : i + 1]) for i in range(len(items()))])
    np.testing.assert_allclose(alone, trials(slug).scores[-1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("slug", SLUGS)
def test_exemplars_stay_in_the_budget_and_are_counted(slug: str, trials: Any) -> None:
    for index, result in enumerate(trials(slug).answers):
        counts = {int(c): n for c, n in result["exemplars"].items()}
        if slug in WITHOUT_MEMORY:
            assert counts == {}
        else:
            share = min(TOTAL_EXEMPLARS // seen_after(index), PER_CLASS)
            assert counts == dict.fromkeys(range(seen_after(index)), share)


def numbers_carried(slug: str, task: int) -> int:
    """Closed formula: floating-point numbers in the state after a task (parameters, BatchNorm, statistics)."""
    classes, branches = seen_after(task), task + 1
    net = BACKBONE + 2 * NORMS
    linear = 65 * classes
    formulas = {
        "icarl": net + linear + 64 * classes,
        "mas": net + linear + 2 * BACKBONE,
        "mas_exemplars": net + linear + 2 * BACKBONE,
        "bic": net + linear + 2 * branches,
        "lucir": net + 64 * classes + 1,
        "podnet": net + 640 * classes + 1,
        "afc": net + 640 * classes + 1 + 16 + 32 + 64 + 64,
        "der": branches * net + (64 * branches + 1) * classes,
        "beef": branches * net + (64 * branches + 1) * classes,
        "memo": GENERAL
        + branches * SPECIAL
        + 2 * (11 * 16 + 10 * 32 + branches * 10 * 64)
        + (64 * branches + 1) * classes,
    }
    if slug == "foster":  # the student, and after the first task the old network, the new backbone and the joint head
        previous = 65 * seen_after(task - 1) if task else 0
        return net + linear + (2 * net + previous + 129 * classes if task else 0)
    return formulas.get(slug, net + linear)


@pytest.mark.parametrize("slug", SLUGS)
def test_stored_parameters_follow_the_formula_after_each_task(slug: str, trials: Any) -> None:
    for index, result in enumerate(trials(slug).answers):
        assert result["stored_parameters"] == numbers_carried(slug, index), f"task {index}"


@pytest.mark.parametrize("slug", SLUGS)
def test_nothing_lies_in_the_state_that_is_not_reported(slug: str, trials: Any) -> None:
    for path, result in zip(trials(slug).states, trials(slug).answers, strict=True):
        counters = sum(t.numel() for t in split(read_state(path)).tensors.values() if not t.is_floating_point())
        images = sum(result["exemplars"].values())
        pixels_and_labels = images * (SIDE * SIDE * 3 + 1)
        assert summarise_state(path).elements == result["stored_parameters"] + counters + pixels_and_labels
        assert counters <= 31 * 4  # BatchNorm's counts of batches


@pytest.mark.parametrize("slug", SLUGS)
def test_the_memory_footprint_is_the_one_of_the_formula(slug: str, trials: Any) -> None:
    result = trials(slug).answers[-1]
    images = 0 if slug in WITHOUT_MEMORY else 6 * (TOTAL_EXEMPLARS // 6)
    expected = 4 * numbers_carried(slug, 2) + 224 * 224 * 3 * images
    assert memory_b4(result["stored_parameters"], sum(result["exemplars"].values())) == expected


@pytest.mark.parametrize("slug", SLUGS)
def test_a_point_drawn_from_the_space_is_accepted(slug: str) -> None:
    space = learner_class(slug).space
    draws = iter(np.random.default_rng(3).random(1000).tolist())
    drawn = space.draw(lambda: next(draws))
    space.check_names(drawn)
    assert learner_class(slug).manifest().name


@pytest.mark.parametrize("slug", ["replay", "beef"])
def test_training_that_runs_to_infinity_is_reported_as_diverged(slug: str, tmp_path: Path) -> None:
    session = Session(learner_class(slug), lambda method, params: None)
    answer(session, "setup", **setup(slug, lr=1e30, epochs=3).model_dump())
    (tmp_path / "out").mkdir()
    task = make_task(0, [0, 1])
    for c in task.classes:
        np.save(tmp_path / f"{c:05d}.npy", task.images[task.labels == c])
    params = {"task": 0, "classes": [0, 1], "data": str(tmp_path), "out": str(tmp_path / "out")}
    response = ask(session, "learn", **params)
    assert response.error is not None
    assert response.error.code == DIVERGED


def test_progress_and_stages_are_told() -> None:
    told: list[str] = []
    session = Session(learner_class("wa"), lambda method, params: told.append(method))
    assert fresh_session("wa") is not session
    model = learner("wa")
    object.__setattr__(model.context, "notify", lambda method, params: told.append(method))
    model.learn(tasks()[0])
    assert told == ["progress", "stage"]


@pytest.mark.parametrize("slug", SLUGS)
def test_odd_streams_are_learned(slug: str) -> None:
    """One image of one class, then known classes together with a new one, then nothing but known classes."""
    model = learner(slug, batch_size=4)
    past = None
    for index, (classes, count) in enumerate([([0], 1), ([0, 1], 5), ([1], 3)]):
        if "past_data" in model.privileges and index:
            earlier = make_task(0, [0], per_class=2)
            past = earlier.images, earlier.labels
        model.learn(make_task(index, classes, per_class=count, past=past))
        assert np.isfinite(model.predict(items())).all()
    assert model.predict(items()).shape == (len(items()), 2)


def test_infinite_features_end_the_trial_as_diverged() -> None:
    model = learner("replay")
    model.learn(tasks()[0])
    with torch.no_grad():
        model.network.backbone.general[0][0].weight.fill_(float("nan"))
    with pytest.raises(DivergedError):
        model.select(tasks()[0].images, 3)
