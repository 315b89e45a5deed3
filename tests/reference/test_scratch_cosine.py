"""Cosine classifiers (LUCIR, PODNet, AFC) and the separated softmax of SS-IL."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from reference.losses import pod_spatial
from reference.methods.ssil import PairedSource
from reference.networks.incremental import frozen

from tests.reference.cases import (
    TASK_1,
    TASK_2,
    after_first,
    batch_of,
    ce,
    enlarged,
    learner,
    make_task,
    parameters,
    scores,
    softmax,
    unchanged,
)


def rows_normalised(v: np.ndarray) -> Any:
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def test_lucir_imprints_new_classes_and_freezes_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    model = after_first("lucir")
    old = parameters(model.network.head.blocks[0])
    features = model.embed(TASK_2.images[TASK_2.labels == 3]).astype(np.float64)
    norm = np.mean([np.linalg.norm(w) for w in old["0"].double().numpy()])
    fit = model.fit
    imprinted: list[np.ndarray] = []

    def watch(*args: Any, **options: Any) -> None:
        imprinted.append(model.network.head.newest().detach().double().numpy().copy())
        fit(*args, **options)

    monkeypatch.setattr(model, "fit", watch)
    model.learn(TASK_2)
    mean = rows_normalised(features).mean(0)
    np.testing.assert_allclose(imprinted[0][1], mean / np.linalg.norm(mean) * norm, rtol=1e-3, atol=1e-6)
    assert unchanged(old, model.network.head.blocks[0])
    assert not np.array_equal(imprinted[0], model.network.head.newest().detach().double().numpy())


def test_lucir_adds_less_forget_and_margin() -> None:
    model, teacher, batch = enlarged("lucir", lambda_base=5, margin=0.5)
    with torch.no_grad():
        model.network.head.scale.fill_(2.0)
    f, g = scores(model.network.features, batch), scores(teacher.features, batch)
    w = torch.cat(model.network.head.weights).detach().double().numpy()
    cosines, y = rows_normalised(f) @ rows_normalised(w).T, batch.labels.numpy()
    less_forget = np.mean(1 - (rows_normalised(f) * rows_normalised(g)).sum(1))
    margins = [
        max(0.0, 0.5 - cosines[i, y[i]] + rival)
        for i in range(len(y))
        if y[i] < 2
        for rival in sorted(cosines[i, 2:])[-2:]
    ]
    expected = ce(2 * cosines, y) + 5 * math.sqrt(2 / 3) * less_forget + np.mean(margins)
    assert model.loss(batch, 2, teacher).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("adaptive", [True, False])
def test_podnet_scales_its_distillation_by_the_growth(adaptive: bool) -> None:
    model, teacher, batch = enlarged("podnet", lambda_c=7, lambda_f=2, adaptive_factor=adaptive)
    z = scores(model.network, batch)
    shifted = z - z.max(1, keepdims=True)
    terms = []
    for row, label in zip(shifted, batch.labels.tolist(), strict=True):
        terms.append(math.log(sum(math.exp(v) for k, v in enumerate(row) if k != label) + 1) - row[label])
    f, g = scores(model.network.features, batch), scores(teacher.features, batch)
    flat = np.mean(1 - (rows_normalised(f) * rows_normalised(g)).sum(1))
    with torch.no_grad():
        spatial = pod_spatial(model.network.backbone.maps(batch.images), teacher.backbone.maps(batch.images)).item()
    factor = math.sqrt(5 / 3) if adaptive else 1.0
    expected = np.mean(terms) + factor * (7 * spatial + 2 * flat)
    assert model.loss(batch, 2, teacher).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("imprint", [True, False])
def test_podnet_keeps_old_proxies_through_both_stages_while_the_rest_trains(imprint: bool) -> None:
    model = after_first("podnet", imprint=imprint)
    proxies, backbone = parameters(model.network.head.blocks[0]), parameters(model.network.backbone)
    scale = model.network.head.scale.item()
    model.learn(TASK_2)
    assert unchanged(proxies, model.network.head.blocks[0])
    assert not unchanged(backbone, model.network.backbone)
    assert model.network.head.scale.item() != scale
    assert model.network.head.newest().shape == (30, 64)


def test_podnet_fine_tunes_on_as_many_images_of_new_classes_as_of_old_ones() -> None:
    model, pools = after_first("podnet"), []
    fit = model.fit

    def watch(pool: Any, loss: Any, recipe: Any, **options: Any) -> None:
        pools.append((np.bincount(pool.labels).tolist(), recipe.schedule))
        fit(pool, loss, recipe, **options)

    model.fit = watch
    model.learn(TASK_2)
    assert [counts for counts, _ in pools] == [[9, 9, 9, 9, 9], [5, 5, 5, 5, 5]]
    assert (pools[1][1].kind, pools[1][1].epochs, pools[1][1].lr) == ("cosine", 1, 0.001)


def test_imprinted_proxies_lie_at_the_mean_norm_of_the_old_ones_in_the_cone_of_the_class() -> None:
    model = after_first("afc")
    model.enlarge(TASK_2.classes)
    model.imprint(TASK_2, 2)
    newest = model.network.head.newest().detach().double().numpy()
    norm = np.mean([np.linalg.norm(w) for w in model.network.head.weights[0].detach().double().numpy()])
    features = model.normalised(TASK_2.images[TASK_2.labels == 2])
    # fewer images than proxies: the centres are the images themselves
    np.testing.assert_allclose(newest[:9], features * norm, rtol=1e-3, atol=1e-5)


def test_afc_distils_with_the_importance_that_the_teacher_carries() -> None:
    model, teacher, batch = enlarged("afc", lambda_c=6)
    plain = model.loss(batch, 2, None).item()
    for weight in teacher.importance:
        weight.fill_(0.0)
    assert model.loss(batch, 2, teacher).item() == pytest.approx(plain, rel=1e-5)
    for weight in teacher.importance:
        weight.fill_(1.0)
    once = model.loss(batch, 2, teacher).item() - plain
    assert once > 0
    for weight in teacher.importance:
        weight.fill_(2.0)
    assert model.loss(batch, 2, teacher).item() - plain == pytest.approx(2 * once, rel=1e-3)
    model.options["lambda_c"] = 2
    assert model.loss(batch, 2, teacher).item() - plain == pytest.approx(2 * once / 3, rel=1e-3)


def test_afc_fine_tunes_nothing_but_the_classifier() -> None:
    model = after_first("afc")
    model.enlarge(TASK_2.classes)
    head, backbone = parameters(model.network.head), parameters(model.network.backbone)
    model.fine_tune(TASK_2)
    assert unchanged(backbone, model.network.backbone)
    assert all(not torch.equal(head[name], value) for name, value in model.network.head.state_dict().items())


def test_afc_importance_is_the_mean_squared_gradient_of_each_channel() -> None:
    model = learner("afc", augmentation="none", batch_size=64)
    model.learn(TASK_1)
    network = model.network.train()
    pool = model.pool((TASK_1.images, TASK_1.labels))
    torch.manual_seed(3)
    batch = next(iter(pool.epoch()))
    z, _, maps = network.with_maps(batch.images)
    for m in maps:
        m.retain_grad()
    y = batch.labels
    shifted = z - z.max(1, keepdim=True).values
    others = torch.exp(shifted).sum(1) - torch.exp(shifted[range(len(y)), y]) + 1
    (torch.log(others) - shifted[range(len(y)), y]).mean().backward()
    torch.manual_seed(3)
    model.estimate_importance(pool)
    for m, weight in zip(maps, network.importance, strict=True):
        assert m.grad is not None
        per_channel = np.asarray((m.grad.double() ** 2).sum((2, 3)).mean(0))
        np.testing.assert_allclose(weight, per_channel / per_channel.mean(), rtol=2e-2)
        assert weight.mean().item() == pytest.approx(1.0, rel=1e-4)


def test_afc_clamps_every_element_of_the_gradients() -> None:
    model = after_first("afc")
    for p in model.network.parameters():
        p.grad = torch.full_like(p, -7.0)
    model.clamp_gradients()
    assert all((p.grad == -5).all() for p in model.network.parameters())


def test_ss_il_pairs_new_images_with_a_quarter_as_many_exemplars() -> None:
    model = after_first("ssil", batch_size=8)
    source = PairedSource(model.pool((TASK_2.images, TASK_2.labels)), model.pool(model.memory.arrays()), 8)
    batches = list(source.epoch())
    assert [len(b.labels) for b in batches] == [10] * 3  # 27 // 8 complete batches, 8 + 2
    for b in batches:
        assert (b.labels[:8] >= 2).all()
        assert (b.labels[8:] < 2).all()
        assert (b.rows[8:] < 0).all()
        assert b.images.is_contiguous(memory_format=torch.channels_last)


def test_ss_il_distils_task_by_task() -> None:
    model = after_first("ssil", temperature=2)
    model.learn(make_task(1, [2]))
    teacher = frozen(model.network)
    model.enlarge([3, 4])
    model.network.train()
    batch = batch_of(model, TASK_2)
    z, previous = scores(model.network, batch), scores(teacher, batch)
    sided = [row[:3] if y < 3 else row[3:] for row, y in zip(z, batch.labels, strict=True)]
    index = [y if y < 3 else y - 3 for y in batch.labels.tolist()]
    separated = np.mean([-np.log(softmax(s[None])[0, i]) for s, i in zip(sided, index, strict=True)])
    distilled = 0.0
    for part in (slice(0, 2), slice(2, 3)):
        q, p = softmax(previous[:, part] / 2), softmax(z[:, part] / 2)
        distilled += 4 * (q * np.log(q / p)).sum(1).mean()
    got = model.loss(batch, 3, [0, 2, 3], teacher).item()
    assert got == pytest.approx(separated + distilled, rel=1e-3)
