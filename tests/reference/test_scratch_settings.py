"""Schedules, recipes, optimisers, spaces and presets."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import torch
from reference.catalogue import METHODS, SCRATCH
from reference.optim import build_optimizer, set_rate
from reference.schedules import Recipe, Schedule, read_milestones, spread_milestones

from suite.protocol.messages import ExemplarBudget, ImageShape, SetupParams
from suite.sdk import Context
from tests.reference.cases import FIRST, learner, learner_class, make_task, point

FOLDER = Path(str(reference.__file__)).parent / "presets"
PRESETS = [path for slug in sorted(SCRATCH) for path in sorted((FOLDER / slug).glob("*.toml"))]

GENERAL: dict[str, list[Any]] = {
    "epochs": [30, 70, 120, 160, 200],
    "lr": [0.05, 0.1, 0.15, 0.2, 0.3],
    "num_milestones": [2, 3, 4],
    "lr_decay": [0.1, 0.3, 0.5],
    "batch_size": [32, 64, 128, 256, 512],
    "weight_decay": [0.0001, 0.0005, 0.001, 0.005],
    "scheduler": ["step", "cosine"],
}
HALVES, ONE_TO_THREE, LONG = [0.5, 1, 1.5, 2, 2.5], [0.5, 1, 1.5, 2, 3], [30, 70, 120, 160, 200]
TABLE_4: dict[str, dict[str, list[Any]]] = {
    "replay": {},
    "icarl": {"temperature": HALVES, "lambda_aux": ONE_TO_THREE},
    "bic": {"temperature": HALVES, "lambda_kd": ONE_TO_THREE, "split_ratio": [0.05, 0.1, 0.15, 0.2, 0.3]},
    "wa": {"temperature": HALVES, "lambda_kd": ONE_TO_THREE},
    "podnet": {
        "lambda_c": [1, 3, 5, 7, 9],
        "lambda_f": ONE_TO_THREE,
        "num_proxy": [10, 20, 30, 50, 100],
        "post_ft_epochs": [5, 10, 20, 30, 50],
        "post_ft_lr": [0.001, 0.003, 0.005, 0.007, 0.01],
        "adaptive_factor": [True, False],
    },
    "der": {"lambda_aux": ONE_TO_THREE},
    "foster": {
        "temperature": HALVES,
        "lambda_kd": ONE_TO_THREE,
        "lambda_fe": ONE_TO_THREE,
        "beta1": [0.93, 0.95, 0.97, 0.99],
        "beta2": [0.93, 0.95, 0.97, 0.99],
        "post_ft_epochs": LONG,
    },
    "beef": {
        "post_ft_epochs": LONG,
        "energy_weight": [0.001, 0.005, 0.01, 0.02, 0.05],
        "logit_alignment": [1.1, 1.4, 1.7, 2.0, 2.3],
    },
    "memo": {"lambda_aux": ONE_TO_THREE, "exemplar_batch_size": [16, 32, 64, 128, 256]},
}


@pytest.mark.parametrize("slug", sorted(TABLE_4))
def test_the_drawn_dimensions_are_exactly_those_of_table_4(slug: str) -> None:
    dimensions: dict[str, Any] = dict(learner_class(slug).space.root)
    drawn = {name: d.values for name, d in dimensions.items() if len(d.values) > 1}
    assert drawn == GENERAL | TABLE_4[slug]
    for name in ("num_milestones", "lr_decay"):
        assert dimensions[name].when == {"scheduler": ["step"]}


@pytest.mark.parametrize("slug", sorted(set(SCRATCH) - set(TABLE_4)))
def test_methods_outside_table_4_share_the_general_dimensions(slug: str) -> None:
    dimensions: dict[str, Any] = dict(learner_class(slug).space.root)
    assert {name: dimensions[name].values for name in GENERAL} == GENERAL


@pytest.mark.parametrize(
    ("epochs", "count", "expected"),
    [(70, 2, (28, 56)), (70, 3, (20, 40, 60)), (30, 4, (6, 13, 20, 26)), (200, 3, (57, 114, 171))],
)
def test_milestones_are_spread_as_the_paper_says(epochs: int, count: int, expected: tuple[int, ...]) -> None:
    assert spread_milestones(epochs, count) == expected
    assert expected == tuple(int(epochs * (2 * k / (2 * count + 1))) for k in range(1, count + 1))


def test_milestones_can_be_given_literally() -> None:
    assert read_milestones("60 120 170", 200) == (60, 120, 170)


def test_the_step_schedule_decays_at_each_milestone() -> None:
    schedule = Schedule("step", 70, 0.1, (30, 50), 0.1)
    assert [schedule.lr_at(e) for e in (0, 29)] == [0.1, 0.1]
    assert schedule.lr_at(30) == pytest.approx(0.01)
    assert schedule.lr_at(69) == pytest.approx(0.001)


def test_the_cosine_schedule_is_pytorchs() -> None:
    schedule = Schedule("cosine", 12, 0.3)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.3)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
    for epoch in range(12):
        assert schedule.lr_at(epoch) == pytest.approx(theirs.get_last_lr()[0])
        optimizer.step()
        theirs.step()


def test_the_first_task_has_fixed_settings_but_the_drawn_batch_and_kind() -> None:
    recipe = Recipe.of(point("replay", scheduler="cosine", batch_size=64, weight_decay=0.005))
    first = recipe.for_first_task(FIRST)
    assert first.schedule == Schedule("cosine", 3, 0.05, (1, 2), 0.5)
    assert (first.batch_size, first.weight_decay) == (64, 0.0)
    assert recipe.for_first_task(None) is recipe
    stepped = Recipe.of(point("replay", scheduler="step")).for_first_task(FIRST)
    assert [stepped.schedule.lr_at(e) for e in range(3)] == [0.05, 0.025, 0.0125]


def test_sgd_follows_momentum_and_weight_decay_by_hand() -> None:
    recipe = Recipe(Schedule("constant", 1, 0.1), 1, weight_decay=0.01)
    w = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    optimizer = build_optimizer([w], recipe)
    by_hand, velocity = 2.0, 0.0
    for rate, gradient in [(0.1, 3.0), (0.1, -1.0), (0.01, 0.5)]:
        set_rate(optimizer, rate)
        w.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        velocity = 0.9 * velocity + gradient + 0.01 * by_hand
        by_hand -= rate * velocity
        assert w.item() == pytest.approx(by_hand)


def test_ss_il_divides_the_rate_by_the_number_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rates = learner("ssil", lr=0.3), []
    monkeypatch.setattr(model, "fit", lambda source, loss, recipe: rates.append(recipe.schedule.lr))
    for index in range(3):
        model.learn(make_task(index, [index]))
    assert rates == pytest.approx([0.3, 0.15, 0.1])


@pytest.mark.parametrize("path", PRESETS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_presets_are_points_of_their_methods_space_and_can_be_run(path: Path) -> None:
    values = tomllib.loads(path.read_text())
    found = learner_class(path.parent.name)
    found.space.check_names(values)
    model = found(Context(SetupParams(image=ImageShape(height=8, width=8), hyperparameters=values, learner_seed=0)))
    assert model.recipe.schedule.epochs == values["epochs"]
    assert all(0 < m < values["epochs"] for m in model.recipe.schedule.milestones)


def test_a_preset_states_what_the_paper_prints() -> None:
    path = next(p for p in PRESETS if p.parent.name == "foster" and p.stem == "cifar50-10tasks")
    values = tomllib.loads(path.read_text())
    assert (values["epochs"], values["lr"], values["batch_size"], values["weight_decay"]) == (120, 0.1, 32, 0.0001)
    assert (values["scheduler"], values["num_milestones"], values["lr_decay"]) == ("step", 3, 0.5)
    assert (values["temperature"], values["lambda_kd"], values["lambda_fe"]) == (2, 1.5, 0.5)
    assert (values["beta1"], values["beta2"], values["post_ft_epochs"]) == (0.97, 0.93, 160)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ValueError, match="augmentation"):
        learner("replay", augmentation="mirror")
    recipe = Recipe(Schedule("constant", 1, 0.1), 1, 0.0, optimizer="lion")
    with pytest.raises(ValueError, match="lion"):
        build_optimizer([torch.zeros(1, requires_grad=True)], recipe)


def test_the_catalogue_names_every_method_once() -> None:
    assert len(set(METHODS.values())) == len(METHODS)
    assert {"ft", "ft_exemplars", "joint", "replay", "mas", "ssil", "lucir", "afc", "lwf"} | set(TABLE_4) <= set(
        SCRATCH
    )


def test_without_a_budget_nothing_is_stored_and_everything_still_runs() -> None:
    for slug in ("replay", "icarl", "bic", "ssil", "podnet", "beef"):
        setup = SetupParams(
            image=ImageShape(height=8, width=8),
            hyperparameters=point(slug),
            learner_seed=0,
            exemplars=ExemplarBudget(total=0),
        )
        model = learner_class(slug)(Context(setup))
        model.learn(make_task(0, [0, 1]))
        model.learn(make_task(1, [2]))
        assert model.report().exemplars == {}
        assert np.isfinite(model.predict(make_task(5, [0]).images)).all()


def test_the_rate_never_leaves_the_schedule() -> None:
    assert math.isclose(Schedule("constant", 5, 0.2).lr_at(4), 0.2)
