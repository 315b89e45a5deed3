"""Backbones, heads that grow, networks that branch; the training loop and its batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.allocator import keep_freed_memory
from reference.augment import BRIGHTNESS, CIFAR_STATISTICS, IMAGENET_STATISTICS, scratch_transform
from reference.batches import Batch, split_rows
from reference.classifiers import CosineHead, LinearHead, TaskHeads, align
from reference.clustering import kmeans
from reference.engine import Hooks, Pool, apply, fit, warm_up
from reference.gradients import Eager
from reference.networks.branched import BranchedNetwork
from reference.networks.incremental import frozen
from reference.networks.resnet import ShortcutA, backbone_for, pool, resnet18, resnet32
from reference.schedules import Recipe, Schedule

from suite.sdk import DivergedError
from tests.reference.cases import batch_of, learner, make_task, parameters, unchanged

CPU = torch.device("cpu")


def first_weight(module: Any) -> torch.Tensor:
    """The first convolution of a backbone."""
    weight: torch.Tensor = module.general[0][0].weight
    return weight


def count(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_resnet32_has_the_published_size() -> None:
    net = resnet32()
    stages = [2 * 9 * w * w * 5 - (9 * w * (w - inputs)) + 4 * w * 5 for w, inputs in ((16, 16), (32, 16), (64, 32))]
    assert count(net) == 3 * 9 * 16 + 32 + sum(stages) == 463_504
    assert net(torch.rand(2, 3, 32, 32)).shape == (2, 64)


def test_resnet18_has_the_published_size() -> None:
    assert count(resnet18()) == 11_689_512 - 513_000  # torchvision's, without its classifier
    assert resnet18()(torch.rand(1, 3, 64, 64)).shape == (1, 512)
    assert backbone_for(64, 3).dimension == 512
    assert backbone_for(32, 1)(torch.rand(2, 1, 32, 32)).shape == (2, 64)


def test_the_shortcut_subsamples_and_fills_new_channels_with_zeros() -> None:
    x = torch.arange(2 * 4 * 4.0).view(1, 2, 4, 4)
    y = ShortcutA(2, 5, 2)(x)
    assert y.shape == (1, 5, 2, 2)
    assert torch.equal(y[:, :2], x[:, :, ::2, ::2])
    assert not y[:, 2:].any()


def test_the_last_map_gives_the_features_and_may_be_negative_without_its_relu() -> None:
    net = resnet32(last_relu=False).eval()
    x = torch.rand(2, 3, 16, 16)
    maps = net.maps(x)
    assert [tuple(m.shape[1:]) for m in maps] == [(16, 16, 16), (32, 8, 8), (64, 4, 4), (64, 4, 4)]
    assert net.map_channels == [16, 32, 64, 64]
    assert torch.equal(pool(maps[-1]), net(x))
    assert maps[-1].min() < 0 <= maps[-2].min()
    assert resnet32().eval()(x).min() >= 0


def test_backbones_work_channels_last() -> None:
    net = backbone_for(32, 3)
    x = torch.rand(2, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    assert all(m.is_contiguous(memory_format=torch.channels_last) for m in net.maps(x))


@pytest.mark.parametrize("head", [LinearHead(4, 2), TaskHeads(4, 2), CosineHead(4, 2), CosineHead(4, 2, 3)])
def test_a_grown_head_scores_old_classes_as_before(head: Any) -> None:
    f = torch.randn(5, 4)
    before = head(f)
    head.grow(5)
    after = head(f)
    assert after.shape == (5, 5)
    torch.testing.assert_close(after[:, :2], before)
    assert head.matrix().shape == (4, 5)


def test_new_rows_are_kaiming_uniform_with_zero_bias() -> None:
    head = LinearHead(64, 1000)
    bound = math.sqrt(3 / 64)  # variance 1 / fan-in
    assert head.weight.abs().max() <= bound
    assert head.weight.std().item() == pytest.approx(1 / 8, rel=0.05)
    assert not head.bias.any()


def test_a_head_can_widen_without_changing_what_the_old_features_say() -> None:
    head, f = LinearHead(4, 2), torch.randn(3, 4)
    before = head(f)
    head.grow(3, 8)
    assert head.weight.shape == (3, 8)
    torch.testing.assert_close(head(torch.cat([f, torch.zeros(3, 4)], 1))[:, :2], before)


def test_alignment_gives_new_rows_the_mean_norm_of_the_old_and_leaves_the_rest() -> None:
    head = LinearHead(4, 5)
    with torch.no_grad():
        head.weight[3:] *= 7
        head.bias.uniform_()
    w, b = head.weight.detach().numpy().copy(), head.bias.detach().clone()
    gamma = np.mean([np.linalg.norm(r) for r in w[:3]]) / np.mean([np.linalg.norm(r) for r in w[3:]])
    assert align(head, 3) == pytest.approx(gamma)
    np.testing.assert_allclose(head.weight.detach().numpy(), np.vstack([w[:3], gamma * w[3:]]), rtol=1e-5)
    assert torch.equal(head.bias, b)
    assert align(head, 3) == pytest.approx(1.0)
    assert align(head, 0) == align(head, 5) == 1.0


@pytest.mark.parametrize("kind", ["whole", "shared"])
def test_only_the_newest_branch_trains_and_old_ones_stay_in_evaluation_mode(kind: str) -> None:
    net: BranchedNetwork = getattr(BranchedNetwork, kind)(resnet32(), 2)
    net.grow(3)
    net.grow(5)
    assert [p.requires_grad for b in net.branches for p in list(b.parameters())[:1]] == [False, False, True]
    net.train()
    assert [b.training for b in net.branches] == [False, False, True]
    old = [parameters(b) for b in list(net.branches)[:-1]]
    net(torch.rand(4, 3, 8, 8)).sum().backward()
    for before, branch in zip(old, net.branches, strict=False):
        assert unchanged(before, branch)  # BatchNorm statistics included
        assert all(p.grad is None for p in branch.parameters())
    assert all(p.grad is not None for p in net.branches[-1].parameters())
    trains = [p.grad is not None for p in net.general.parameters()]
    assert all(trains)
    assert len(trains) == (0 if kind == "whole" else 63)
    assert net.head.weight.shape == (5, 192)


def test_a_branch_starts_as_a_copy_of_the_last_or_the_first_one() -> None:
    net = BranchedNetwork.whole(resnet32(), 2)
    net.grow(3)
    with torch.no_grad():
        first_weight(net.branches[1]).fill_(5)
    net.grow(4, origin="first")
    net.grow(5, origin="last")
    first = [first_weight(b).detach() for b in net.branches]
    assert torch.equal(first[2], first[0])
    assert torch.equal(first[3], first[2])


def test_a_frozen_copy_does_not_follow_its_origin() -> None:
    net = resnet32()
    teacher = frozen(net)
    before = parameters(teacher)
    with torch.no_grad():
        next(net.parameters()).add_(1)
    net.train()(torch.rand(2, 3, 8, 8))
    assert unchanged(before, teacher)
    assert not teacher.training
    assert not any(p.requires_grad for p in teacher.parameters())


# --- batches ----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 20))
def test_every_row_comes_once_and_none_alone_if_that_can_be_helped(n: int, size: int) -> None:
    pieces = split_rows(torch.randperm(n), size)
    assert sorted(torch.cat(pieces).tolist()) == list(range(n))
    if size > 1 and n > 1:
        assert min(map(len, pieces)) > 1
    assert max(map(len, pieces)) <= size + 1


def test_crops_and_flips_are_windows_of_the_padded_image() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    transform = scratch_transform(8, 3, "crop_flip_jitter")
    transform._brightness = 0.0  # type: ignore[attr-defined]
    stored = transform.store(images, CPU)
    out = transform.train(stored, torch.tensor([0, 1] * 40)).numpy()
    mean, std = (np.array(s) for s in CIFAR_STATISTICS)
    seen = set()
    for i in range(80):
        padded = np.pad(images[i % 2], ((1, 1), (1, 1), (0, 0)))
        matches = []
        for top in range(3):
            for left in range(3):
                window = padded[top : top + 8, left : left + 8]
                for flipped in (False, True):
                    pixels = window[:, ::-1] if flipped else window
                    expected = ((pixels / 255 - mean) / std).transpose(2, 0, 1)
                    if np.allclose(out[i], expected, atol=1e-4):
                        matches.append((top, left, flipped))
        assert len(matches) == 1
        seen.add(matches[0])
    assert len(seen) > 12  # of 18


def test_brightness_multiplies_each_image_by_its_own_factor_and_clips() -> None:
    images = np.full((300, 8, 8, 3), 200, np.uint8)
    transform = scratch_transform(8, 3, "crop_jitter")
    out = transform.train(transform.store(images, CPU), torch.arange(300)).numpy()
    mean, std = (np.array(s)[:, None, None] for s in CIFAR_STATISTICS)
    centres = ((out * std + mean) * 255)[:, :, 4, 4]
    assert np.allclose(centres, centres[:, :1], atol=1e-2)
    assert centres.min() == pytest.approx(200 * (1 - BRIGHTNESS), rel=0.02)
    assert centres.max() == pytest.approx(200 * (1 + BRIGHTNESS), rel=0.02)
    white = transform.train(transform.store(images + np.uint8(55), CPU), torch.arange(300)).numpy()
    assert ((white * std + mean) * 255).max() <= 255.01


def test_without_augmentation_training_sees_what_testing_sees() -> None:
    images = make_task(0, [0]).images
    transform = scratch_transform(8, 3, "none")
    trained = transform.train(transform.store(images, CPU), torch.arange(len(images)))
    torch.testing.assert_close(trained, transform.test(torch.from_numpy(images)))
    assert trained.is_contiguous(memory_format=torch.channels_last)


def test_large_images_are_cropped_to_seven_eighths() -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 256, 256, 3), dtype=np.uint8)
    transform = scratch_transform(256, 3)
    tested = transform.test(torch.from_numpy(images)).numpy()
    mean, std = (np.array(s) for s in IMAGENET_STATISTICS)
    expected = ((images[:, 16:240, 16:240] / 255 - mean) / std).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(tested, expected, atol=1e-4)
    trained = transform.train(transform.store(images, CPU), torch.tensor([1, 0, 1]))
    assert trained.shape == (3, 3, 224, 224)
    assert torch.isfinite(trained).all()


def test_features_are_computed_without_autograd_batch_by_batch() -> None:
    images = make_task(0, [0, 1]).images
    transform = scratch_transform(8, 3)
    net = resnet32().eval()
    whole = apply(net, images, transform, CPU)
    np.testing.assert_allclose(whole, apply(net, images, transform, CPU, 5), rtol=1e-4, atol=1e-5)


# --- loop -------------------------------------------------------------------------------------------------------------


def tiny_pool(n: int = 9) -> Pool:
    images = np.random.default_rng(0).integers(0, 256, (n, 8, 8, 3), dtype=np.uint8)
    return Pool(images, np.arange(n) % 2, scratch_transform(8, 3), 4, CPU)


def test_the_loop_trains_what_it_is_given_for_as_many_epochs_as_the_recipe_says() -> None:
    backbone, head = resnet32().requires_grad_(False), LinearHead(64, 2)
    net = torch.nn.Sequential(backbone, head)
    before, row, told = parameters(backbone), head.weight.detach().clone(), []
    recipe = Recipe(Schedule("step", 3, 0.1, (1,), 0.1), 4, 0.0)
    hooks = Hooks(note=lambda *values: told.append(values))
    loss = lambda batch: torch.nn.functional.cross_entropy(net(batch.images), batch.labels)  # noqa: E731
    fit(net, list(head.parameters()), tiny_pool(), loss, recipe, hooks)
    assert (told[0][:2], told[-1][:2]) == ((1, 3), (3, 3))
    assert not torch.equal(row, head.weight)
    after = parameters(backbone)
    assert all(torch.equal(before[k], after[k]) for k in before if "weight" in k)


def test_a_loss_that_is_not_finite_ends_training() -> None:
    w = torch.ones(1, requires_grad=True)
    recipe = Recipe(Schedule("constant", 2, 0.1), 4, 0.0)
    with pytest.raises(DivergedError, match="nan in epoch 1 of 2"):
        fit(torch.nn.Identity(), [w], tiny_pool(), lambda batch: (w * float("nan")).sum(), recipe)


def test_gradients_of_the_step_before_are_forgotten() -> None:
    w = torch.ones(1, requires_grad=True)
    gradients = Eager(lambda batch: (w * batch.rows.float()).sum(), [{"params": [w]}])
    for value in (2, 3):
        loss = gradients(Batch(torch.zeros(1), torch.zeros(1), torch.tensor([value])))
        assert loss.item() == value
        assert w.grad is not None
        assert w.grad.item() == value


def test_setting_up_needs_no_data_and_leaves_the_result_alone() -> None:
    keep_freed_memory()
    warm_up(resnet32(), 8, 3, 2, CPU)
    one, two = learner("replay"), learner("replay")
    two.setup()
    task = make_task(0, [0, 1])
    for model in (one, two):
        torch.manual_seed(0)
        model.learn(task)
    np.testing.assert_array_equal(one.predict(task.images), two.predict(task.images))


def test_k_means_finds_separated_modes_and_repeats_points_where_there_are_too_few() -> None:
    torch.manual_seed(0)
    modes = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = torch.cat([m + 0.1 * torch.randn(20, 2) for m in modes])
    centres = kmeans(points, 3)
    assert torch.cdist(modes, centres).min(1).values.max() < 0.2
    few = kmeans(points[:2], 5)
    assert few.shape == (5, 2)
    assert torch.equal(few[2], points[0])
    same = kmeans(torch.ones(6, 2), 3)
    assert torch.isfinite(same).all()


def test_augmented_batches_carry_their_rows_and_labels() -> None:
    model, task = learner("replay"), make_task(0, [0, 1])
    model.enlarge([0, 1])
    batch = batch_of(model, task)
    assert batch.labels.tolist() == task.labels.tolist()
    assert batch.rows.tolist() == list(range(len(task.labels)))
