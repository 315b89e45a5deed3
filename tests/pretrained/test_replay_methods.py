"""Gaussian replay, alignment, reservoirs, running means and Fisher weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.pretrained.afec import AFEC
from reference.pretrained.cls_er import CLSER
from reference.pretrained.er_pretrained import ERPretrained
from reference.pretrained.heads import Head
from reference.pretrained.hide_prompt import HiDePrompt, contrast
from reference.pretrained.reservoir import Reservoir
from reference.pretrained.slca import SLCA
from reference.pretrained.statistics import Gaussians, Mixtures, k_means

from suite.protocol.messages import ExemplarBudget
from tests.pretrained.cases import POINTS
from tests.pretrained.conftest import TASKS, Bring, learn, make_task, predict


@pytest.mark.parametrize("count", [3, 400], ids=["fewer samples than dimensions", "more"])
def test_replayed_features_have_the_classs_mean_and_covariance(count: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(count, 5) @ torch.randn(5, 5) + 2
    gaussians = Gaussians(5)
    gaussians.grow(2)
    gaussians.fit(1, x)
    drawn = gaussians.sample(1, 200_000, scale=0.9).double().numpy()
    covariance = np.cov(x.double().numpy(), rowvar=False) + 1e-4 * np.eye(5)
    np.testing.assert_allclose(drawn.mean(0), 0.9 * x.double().numpy().mean(0), atol=0.05)
    np.testing.assert_allclose(np.cov(drawn, rowvar=False), covariance, atol=0.02 * abs(covariance).max())


def test_a_class_of_one_image_can_be_replayed() -> None:
    gaussians = Gaussians(3)
    gaussians.grow(1)
    gaussians.fit(0, torch.ones(1, 3))
    assert (gaussians.sample(0, 10) - 1).abs().max() < 0.1


def test_k_means_finds_separated_clusters() -> None:
    torch.manual_seed(0)
    x = torch.cat([torch.randn(30, 4) * 0.1 + centre for centre in (-5.0, 0.0, 5.0)])
    mixtures = Mixtures(4, 3)
    mixtures.grow(1)
    for _ in range(5):  # a bad start may end in a worse optimum
        mixtures.fit(0, x)
        if mixtures.variances.max() < 0.1:
            break
    assert sorted(mixtures.means[0, :, 0].round().tolist()) == [-5, 0, 5]
    drawn = mixtures.sample(0, 3000)
    assert drawn.mean().abs() < 0.3
    centres, member = k_means(torch.randn(2, 4), 10)
    assert len(centres) == 2
    assert member.tolist() != [0, 0]


def test_slca_scores_with_the_aligned_head_and_starts_again_from_the_other(bring: Bring) -> None:
    learner = bring(SLCA, **POINTS["slca"])
    assert isinstance(learner, SLCA)
    learn(learner, TASKS[0])
    assert torch.equal(learner.network.head.weight, learner.network.aligned.weight)
    old = learner.network.head.weight.clone()
    learn(learner, make_task(1, [3, 4]))
    assert torch.equal(learner.network.head.weight[:3], old)  # of old rows only the aligned copy moves
    assert not torch.equal(learner.network.aligned.weight[:3], old)
    pixels = next(learner.batches(TASKS[0].images))
    torch.testing.assert_close(learner.scores(pixels), learner.network.aligned(learner.network.body(pixels)))


def test_only_the_tasks_rows_of_a_head_move_even_with_decay() -> None:
    head = Head(4)
    head.grow(5)
    before = head.weight.clone()
    part = head.part(torch.tensor([1, 3]))
    optimizer = torch.optim.SGD(part.parameters(), 0.1, weight_decay=0.5)
    loss = part.loss(torch.randn(6, 4), torch.tensor([1, 3, 1, 3, 3, 3]))
    torch.autograd.backward(loss)
    optimizer.step()
    head.put(part)
    moved = (head.weight != before).any(1)
    assert moved.tolist() == [False, True, False, True, False]


@settings(deadline=None, max_examples=25)
@given(
    total=st.one_of(st.none(), st.integers(1, 12)),
    per_class=st.one_of(st.none(), st.integers(1, 4)),
    stream=st.lists(st.integers(0, 3), min_size=1, max_size=60),
)
def test_a_reservoir_stays_within_its_budget(total: int | None, per_class: int | None, stream: list[int]) -> None:
    memory = Reservoir(ExemplarBudget(total=total, per_class=per_class))
    memory.open(4)
    for label in stream:
        memory.offer(np.full((2, 2, 3), label, np.uint8), label)
    counts = memory.counts()
    if total is not None:
        assert len(memory) <= total
    if per_class is not None:
        assert max(counts.values(), default=0) <= per_class
    if len(memory):
        images, labels = memory.draw(100)
        assert (images[:, 0, 0, 0] == labels).all()


def test_a_reservoir_keeps_a_uniform_sample() -> None:
    torch.manual_seed(0)
    kept = np.zeros(20)
    for _ in range(600):
        memory = Reservoir(ExemplarBudget(total=5))
        for item in range(20):
            memory.offer(np.zeros((1, 1, 1), np.uint8), item)
        kept[list(memory.counts())] += 1
    assert abs(kept / 600 - 5 / 20).max() < 0.07


def test_a_reservoir_shrinks_with_more_classes() -> None:
    memory = Reservoir(ExemplarBudget(total=8, per_class=6))
    memory.open(1)
    for _ in range(6):
        memory.offer(np.zeros((1, 1, 1), np.uint8), 0)
    memory.open(4)
    assert memory.counts() == {0: 2}


def test_rehearsal_reports_its_images(bring: Bring) -> None:
    learner = bring(ERPretrained, **POINTS["er_pretrained"])
    for task in TASKS:
        learn(learner, task)
    counts = learner.report().exemplars
    assert sum(counts.values()) == 20
    assert len(counts) > 1


def test_cls_er_predicts_with_the_stable_network(bring: Bring) -> None:
    learner = bring(CLSER, **POINTS["cls_er"])
    assert isinstance(learner, CLSER)
    learn(learner, TASKS[0])
    learn(learner, TASKS[2])
    pixels = next(learner.batches(TASKS[0].images))
    torch.testing.assert_close(learner.scores(pixels), learner.network.stable(pixels))
    assert not torch.equal(learner.network.stable.head.weight, learner.network.head.weight)
    assert learner.steps_done == 2 * (3 + 2)


def test_a_copy_follows_by_its_decay(bring: Bring) -> None:
    learner = bring(CLSER, **POINTS["cls_er"])
    assert isinstance(learner, CLSER)
    network = learner.network
    with torch.no_grad():
        for p in network.body.parameters():
            p.fill_(1.0)
        for p in network.stable.body.parameters():
            p.fill_(0.0)
    network.follow(network.stable, 0.75)
    assert all((p == 0.25).all() for p in network.stable.body.parameters())
    assert all((p != 0.25).any() for p in network.plastic.body.parameters() if p.numel() > 1)


def test_afec_weights_are_mean_squared_gradients(bring: Bring) -> None:
    learner = bring(AFEC, **POINTS["afec"])
    assert isinstance(learner, AFEC)
    learn(learner, TASKS[0])
    task, body = TASKS[0], learner.network.body  # 18 images: one batch
    pixels, labels = next(learner.batches(task.images)), torch.from_numpy(task.labels)
    loss = torch.nn.functional.cross_entropy(learner.network.head(body(pixels)), labels)
    for expected, fisher in zip(
        torch.autograd.grad(loss, list(body.parameters())), learner.network.fisher, strict=True
    ):
        torch.testing.assert_close(fisher.data, expected.square(), rtol=1e-3, atol=1e-9)


def test_a_strong_penalty_keeps_the_network_in_its_place(bring: Bring) -> None:
    def drift(strength: float) -> float:
        point = POINTS["afec"] | {"ewc_lambda": strength, "forget_lambda": 0.0, "lr": 0.2, "epochs": 5}
        learner = bring(AFEC, **point)
        assert isinstance(learner, AFEC)
        learn(learner, TASKS[0])
        kept = learner.network.fisher, learner.network.anchor
        fishers, anchors = ([p.detach().clone() for p in values] for values in kept)
        learn(learner, make_task(1, [3, 4]))
        values = [p.detach() for p in learner.network.body.parameters()]
        terms = zip(fishers, values, anchors, strict=True)
        return sum(float((f * (value - anchor).square()).sum()) for f, value, anchor in terms)

    assert drift(100.0) < drift(0.0)


def test_hide_prompt_finds_the_task_and_then_the_class(bring: Bring) -> None:
    learner = bring(HiDePrompt, **POINTS["hide_prompt"] | {"alignment_lr": 0.2})
    assert isinstance(learner, HiDePrompt)
    for task in TASKS:
        learn(learner, task)
    identified = np.concatenate(
        [learner.gather(t.images, lambda p: learner.identity(learner.backbone(p))).numpy() for t in TASKS]
    )
    truth = np.repeat([0, 1, 2], [len(t.labels) for t in TASKS])
    assert (identified == truth).mean() > 0.6
    labels = np.concatenate([t.labels for t in TASKS])
    predicted = np.concatenate([predict(learner, t.images) for t in TASKS]).argmax(1)
    assert (predicted == labels).mean() > 0.5


def test_contrast_is_small_when_features_are_far_from_one_another() -> None:
    near, far = torch.ones(2, 4), 20 * torch.eye(4)[:2]
    assert float(contrast(far, 20 * torch.eye(4)[2:])) < 1e-3 < float(contrast(near, torch.ones(1, 4)))
