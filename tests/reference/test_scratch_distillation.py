"""Fine-tuning, regularisation and distillation: losses against numpy, what trains, what is held."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from reference.batches import Batch
from reference.classifiers import TaskHeads
from reference.networks.incremental import IncrementalNetwork
from torch import nn

from suite.protocol.messages import ExemplarBudget
from suite.sdk import Context
from tests.reference.cases import (
    NO_DECAY,
    TASK_1,
    TASK_2,
    after_first,
    ce,
    enlarged,
    kd,
    learner,
    make_task,
    parameters,
    scores,
    setup,
    softmax,
    unchanged,
)


def test_fine_tuning_moves_features_but_no_old_row_of_the_classifier() -> None:
    model = after_first("ft", **NO_DECAY)
    head, backbone = model.network.head.weight.detach().clone(), parameters(model.network.backbone)
    model.learn(TASK_2)
    assert torch.equal(model.network.head.weight[:2], head)
    assert not unchanged(backbone, model.network.backbone)


def test_fine_tuning_with_exemplars_moves_old_rows() -> None:
    model = after_first("ft_exemplars", **NO_DECAY)
    head = model.network.head.weight.detach().clone()
    model.learn(TASK_2)
    assert not torch.equal(model.network.head.weight[:2], head)


def test_joint_trains_on_the_past_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    model = learner("joint")
    sizes: list[int] = []
    monkeypatch.setattr(model, "fit", lambda pool, loss, recipe: sizes.append(len(pool)))
    model.learn(TASK_1)
    model.learn(make_task(1, [2, 3, 4], past=(TASK_1.images, TASK_1.labels)))
    assert sizes == [18, 45]
    assert type(model).privileges == ("past_data",)


@pytest.mark.parametrize("restart", [False, True])
def test_joint_goes_on_or_starts_again(restart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = after_first("joint", restart=restart)
    before = parameters(model.network.backbone)
    monkeypatch.setattr(model, "fit", lambda *args: None)
    model.learn(make_task(1, [2], past=(TASK_1.images, TASK_1.labels)))
    assert unchanged(before, model.network.backbone) is not restart


def test_lwf_adds_distillation_of_old_logits_to_the_new_classes_cross_entropy() -> None:
    model, teacher, batch = enlarged("lwf", temperature=2, lambda_kd=3)
    new = batch.labels >= 2
    batch = Batch(batch.images[new], batch.labels[new], batch.rows[new])
    z, previous = scores(model.network, batch), scores(teacher, batch)
    expected = ce(z[:, 2:], batch.labels - 2) + 3 * kd(z[:, :2], previous, 2)
    assert model.loss(batch, torch.tensor([2, 3, 4]), 2, teacher).item() == pytest.approx(expected, rel=1e-4)


class _Flat(nn.Module):
    """A linear stand-in for a backbone, so that importances can be worked out by hand."""

    dimension = 3

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 192) / 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1) @ self.weight.T


def test_mas_importance_is_the_mean_absolute_gradient_of_the_outputs_length() -> None:
    torch.manual_seed(0)
    model = learner("mas", augmentation="none", batch_size=4)
    model.enlarge([0, 1])
    flat = _Flat()
    model.network = IncrementalNetwork(flat, TaskHeads(3, 2))  # type: ignore[arg-type]
    task = make_task(0, [0, 1])
    x = np.asarray(model.transform.test(torch.from_numpy(task.images)).flatten(1).double())
    w, head = np.asarray(flat.weight.detach().double()), model.network.head.blocks[0]
    v, b = np.asarray(head.weight.detach().double()), np.asarray(head.bias.detach().double())
    torch.manual_seed(1)
    order = torch.randperm(18)
    torch.manual_seed(1)
    omega = model.estimate_importance(task).numpy().reshape(3, 192)
    total = np.zeros((3, 192))
    pieces = [order[i : i + 4].numpy() for i in range(0, 18, 4)]
    for rows in pieces:
        gradient = np.zeros((3, 192))
        for i in rows:
            z = v @ (w @ x[i]) + b
            gradient += np.outer(v.T @ (z / np.linalg.norm(z)), x[i]) / len(rows)
        total += np.abs(gradient) * len(rows)
    np.testing.assert_allclose(omega, total / 18, rtol=1e-3, atol=1e-6)


def test_mas_holds_parameters_by_half_lambda_omega_times_the_squared_distance() -> None:
    model, _, batch = enlarged("mas_exemplars", lambda_mas=10)
    flat = model.flat().detach()
    anchor, omega = flat - 0.5, torch.rand_like(flat)
    plain = model.loss(batch, None, None, None)
    held = model.loss(batch, None, anchor, omega)
    assert plain.item() == pytest.approx(ce(scores(model.network, batch), batch.labels), rel=1e-4)
    assert (held - plain).item() == pytest.approx(10 / 2 * 0.25 * omega.double().sum().item(), rel=1e-3)
    gradients = torch.autograd.grad(held - plain, list(model.network.backbone.parameters()), allow_unused=True)
    np.testing.assert_allclose(torch.cat([g.reshape(-1) for g in gradients if g is not None]), 5 * omega, rtol=0.05)


def test_mas_leaves_old_heads_alone_and_anchors_what_it_learned() -> None:
    model = after_first("mas")
    head = parameters(model.network.head.blocks[0])
    first = model.importance.clone()
    assert torch.equal(model.anchor, model.flat().detach())
    fresh: list[torch.Tensor] = []
    estimate = model.estimate_importance

    def watch(task: Any) -> torch.Tensor:
        fresh.append(estimate(task))
        return fresh[0]

    model.estimate_importance = watch
    model.learn(TASK_2)
    assert unchanged(head, model.network.head.blocks[0])
    assert torch.equal(model.anchor, model.flat().detach())
    torch.testing.assert_close(model.importance, 0.5 * first + 0.5 * fresh[0])


def test_replay_is_cross_entropy_over_all_classes() -> None:
    model, _, batch = enlarged("replay")
    assert model.loss(batch).item() == pytest.approx(ce(scores(model.network, batch), batch.labels), rel=1e-4)


def test_icarl_adds_distillation_of_old_logits() -> None:
    model, teacher, batch = enlarged("icarl", temperature=2.5, lambda_aux=3)
    z, previous = scores(model.network, batch), scores(teacher, batch)
    expected = ce(z, batch.labels) + 3 * kd(z[:, :2], previous, 2.5)
    assert model.loss(batch, 2, teacher).item() == pytest.approx(expected, rel=1e-4)
    assert model.loss(batch, 2, None).item() == pytest.approx(ce(z, batch.labels), rel=1e-4)


@pytest.mark.parametrize("slug", ["wa", "bic"])
@pytest.mark.parametrize("strength", [0, 1.5])
def test_wa_and_bic_mix_or_add_distillation(slug: str, strength: float) -> None:
    model, teacher, batch = enlarged(slug, temperature=2, lambda_kd=strength)
    if slug == "bic":  # the teacher answers with its corrected logits
        with torch.no_grad():
            teacher.biases[0].alpha.fill_(1.3)
            teacher.biases[0].beta.fill_(-0.2)
    z, previous = scores(model.network, batch), scores(teacher, batch)
    share = 2 / 5
    first, second = ce(z, batch.labels), kd(z[:, :2], previous, 2)
    expected = first + strength * second if strength else (1 - share) * first + share * second
    assert model.loss(batch, 2, teacher).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("slug", ["lwf", "icarl", "wa", "bic"])
def test_both_terms_reach_the_classifier_with_the_gradients_worked_out_by_hand(slug: str) -> None:
    """By the bias: (softmax(z) - onehot) for CE, (softmax(z/T) - softmax(z'/T)) / T on old classes for KD."""
    strength = {"lambda_aux": 3} if slug == "icarl" else {"lambda_kd": 3}
    model, teacher, batch = enlarged(slug, temperature=2, **strength)
    if slug == "lwf":
        new = batch.labels >= 2
        batch = Batch(batch.images[new], batch.labels[new], batch.rows[new])
    z, previous, y = scores(model.network, batch), scores(teacher, batch), batch.labels.numpy()
    by_ce, by_kd = np.zeros_like(z), np.zeros_like(z)
    first = 2 if slug == "lwf" else 0  # LwF's cross-entropy is among the new classes
    by_ce[:, first:] = softmax(z[:, first:])
    by_ce[np.arange(len(y)), y] -= 1
    by_kd[:, :2] = (softmax(z[:, :2] / 2) - softmax(previous / 2)) / 2
    loss = model.loss(batch, torch.tensor([2, 3, 4]), 2, teacher) if slug == "lwf" else model.loss(batch, 2, teacher)
    (gradient,) = torch.autograd.grad(loss, model.network.head.bias)
    np.testing.assert_allclose(gradient, (by_ce + 3 * by_kd).mean(0), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("slug", ["wa", "der", "memo"])
def test_new_rows_end_with_the_mean_norm_of_the_old(slug: str) -> None:
    model = after_first(slug)
    model.learn(TASK_2)
    norms = model.network.head.weight.detach().norm(dim=1)
    assert norms[2:].mean().item() == pytest.approx(norms[:2].mean().item(), rel=1e-5)


def test_the_head_can_be_read_as_classifier_or_as_nearest_mean() -> None:
    linear, nearest = after_first("icarl", head="linear"), after_first("icarl", head="nme")
    items = make_task(5, [0]).images
    linear.network.eval()
    x = linear.transform.test(torch.from_numpy(items))
    np.testing.assert_allclose(linear.predict(items), linear.network(x).detach(), rtol=1e-4, atol=1e-5)
    assert (nearest.predict(items) <= 0).all()


def test_bic_corrects_with_two_parameters_that_are_all_that_the_second_stage_trains() -> None:
    model, stages = learner("bic"), []
    fit = model.fit

    def watch(pool: Any, loss: Any, recipe: Any, **options: Any) -> None:
        before = parameters(model.network)
        fit(pool, loss, recipe, **options)
        after = model.network.state_dict()
        stages.append({name for name in before if not torch.equal(before[name], after[name])})

    model.fit = watch
    model.learn(TASK_1)
    assert len(stages) == 1
    model.learn(TASK_2)
    assert not any(name.startswith("biases") for name in stages[1])
    assert stages[2] == {"biases.1.alpha", "biases.1.beta"}
    assert (model.network.biases[0].alpha.item(), model.network.biases[0].beta.item()) == (1, 0)
    model.network.eval()
    x = model.transform.test(torch.from_numpy(TASK_1.images))
    raw = model.network.head(model.network.backbone(x)).detach()
    alpha, beta = (model.network.biases[1].state_dict()[k].item() for k in ("alpha", "beta"))
    expected = torch.cat([raw[:, :2], alpha * raw[:, 2:] + beta], 1)
    np.testing.assert_allclose(model.predict(TASK_1.images), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("twice", [False, True])
def test_bic_fits_the_correction_by_cross_entropy_and_on_request_with_pycils_double_softmax(twice: bool) -> None:
    model, _, batch = enlarged("bic", double_softmax=twice)
    model.network.eval()
    with torch.no_grad():
        model.network.biases[1].alpha.fill_(0.7)
        model.network.biases[1].beta.fill_(-0.3)
    z = scores(lambda x: model.network.head(model.network.backbone(x)), batch)
    z = np.concatenate([z[:, :2], 0.7 * z[:, 2:] - 0.3], 1)
    loss = model.bias_loss(batch)
    assert loss.item() == pytest.approx(ce(softmax(z) if twice else z, batch.labels), rel=1e-4)
    if not twice:
        loss.backward()
        error = softmax(z) - np.eye(5)[batch.labels.numpy()]
        raw = (z[:, 2:] + 0.3) / 0.7
        assert model.network.biases[1].beta.grad.item() == pytest.approx(error[:, 2:].sum(1).mean(), rel=1e-3)
        assert model.network.biases[1].alpha.grad.item() == pytest.approx((error[:, 2:] * raw).sum(1).mean(), rel=1e-3)


@pytest.mark.parametrize(("ratio", "held"), [(0.05, 1), (0.3, 3), (5.0, 8)])
def test_bic_holds_out_the_same_number_of_each_class_and_leaves_one(ratio: float, held: int) -> None:
    model = after_first("bic", split_ratio=ratio)
    model.enlarge(TASK_2.classes)
    data = model.with_memory(TASK_2)
    (images, labels), (out, out_labels) = model.split(data, 2)
    assert np.bincount(out_labels).tolist() == [held] * 5
    assert len(labels) + len(out_labels) == len(data[1])
    together = np.concatenate([images, out]).reshape(len(data[1]), -1)
    assert sorted(map(bytes, together)) == sorted(map(bytes, data[0].reshape(len(data[1]), -1)))


def test_all_methods_take_gradients_to_exactly_what_trains() -> None:
    """After a loss, gradients reach the trainable parameters and no others."""
    cases: dict[str, Any] = {
        "replay": lambda m, t, b: m.loss(b),
        "icarl": lambda m, t, b: m.loss(b, 2, t),
        "wa": lambda m, t, b: m.loss(b, 2, t),
        "lucir": lambda m, t, b: m.loss(b, 2, t),
        "podnet": lambda m, t, b: m.loss(b, 2, t),
        "afc": lambda m, t, b: m.loss(b, 2, t),
        "ssil": lambda m, t, b: m.loss(b, 2, [0, 2], t),
        "der": lambda m, t, b: m.loss(b, 2, None),
        "memo": lambda m, t, b: m.loss(b, 2, None),
    }
    for slug, loss in cases.items():
        model, teacher, batch = enlarged(slug)
        if slug in ("lucir", "podnet", "afc"):
            model.network.head.freeze_old()
        for p in model.network.parameters():
            p.grad = None
        loss(model, teacher, batch).backward()
        reached = {
            name for name, p in model.network.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0
        }
        trainable = {name for name, p in model.network.named_parameters() if p.requires_grad}
        assert reached == trainable, slug
        assert all(p.grad is None for p in teacher.parameters()), slug


def test_the_budget_per_class_is_kept_too() -> None:
    model = type(learner("replay"))(Context(setup("replay", budget=ExemplarBudget(per_class=3))))
    model.learn(TASK_1)
    model.learn(TASK_2)
    assert model.report().exemplars == dict.fromkeys(range(5), 3)
