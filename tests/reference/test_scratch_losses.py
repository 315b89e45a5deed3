"""Loss terms against loops in numpy float64 that follow the papers' formulas sample by sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.classifiers import CosineHead
from reference.losses import cross_entropy_of, direction, discrepancy, distillation, nca, pod_spatial
from reference.methods.foster import balanced_distillation, effective_weights

from tests.reference.cases import learner

RNG = np.random.default_rng(0)


def softmax(z: np.ndarray) -> Any:
    e = np.exp(z - z.max())
    return e / e.sum()


def cross_entropy(z: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean([-math.log(softmax(row)[label]) for row, label in zip(z, y, strict=True)]))


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array)


def unit(v: np.ndarray) -> Any:
    return v / np.linalg.norm(v)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.sampled_from([0.5, 1, 1.5, 2, 2.5]), st.integers(0, 10**6))
def test_distillation_is_the_cross_entropy_of_softened_distributions(n: int, c: int, t: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    z, teacher = rng.normal(size=(n, c)) * 3, rng.normal(size=(n, c)) * 3
    expected = 0.0
    for i in range(n):
        for k in range(c):
            expected -= softmax(teacher[i] / t)[k] * math.log(softmax(z[i] / t)[k]) / n
    assert distillation(tensor(z), tensor(teacher), t).item() == pytest.approx(expected)


def test_distillation_is_stationary_where_student_and_teacher_agree() -> None:
    z = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(distillation(z, z.detach(), 2.0), z)
    assert gradient.abs().max() < 1e-12


def test_cross_entropy_of_sees_only_the_named_columns() -> None:
    z, y = RNG.normal(size=(6, 5)), np.array([1, 4, 4, 1, 3, 3])
    expected = cross_entropy(z[:, [1, 3, 4]], np.array([0, 2, 2, 0, 1, 1]))
    assert cross_entropy_of(tensor(z), tensor(y), torch.tensor([1, 3, 4])).item() == pytest.approx(expected)


def test_nca_as_coded_cancels_the_margin_and_keeps_one_in_the_denominator() -> None:
    s, y = RNG.normal(size=(5, 4)), np.array([0, 3, 1, 2, 2])
    losses = []
    for row, label in zip(s, y, strict=True):
        shifted = row - row.max()
        denominator = sum(math.exp(v) for k, v in enumerate(shifted) if k != label) + 1.0
        losses.append(-(shifted[label] - math.log(denominator)))
    for margin in (0.0, 0.6):
        assert nca(tensor(s), tensor(y), margin).item() == pytest.approx(np.mean(losses))


def test_nca_of_the_paper_has_margin_exclusion_and_hinge() -> None:
    s, y = RNG.normal(size=(40, 3)) * 2, RNG.integers(0, 3, 40)
    losses = []
    for row, label in zip(s, y, strict=True):
        denominator = sum(math.exp(v) for k, v in enumerate(row) if k != label)
        losses.append(max(0.0, -math.log(math.exp(row[label] - 0.6) / denominator)))
    assert 0 < sum(v == 0 for v in losses) < 40  # the hinge acts on some
    assert nca(tensor(s), tensor(y), 0.6, as_coded=False).item() == pytest.approx(np.mean(losses))


def maps(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [RNG.normal(size=s) for s in shapes]


def test_pod_spatial_pools_over_width_and_height() -> None:
    shapes = [(3, 2, 4, 4), (3, 5, 2, 3)]
    a, b = maps(*shapes), maps(*shapes)
    losses = []
    for x, y in zip(a, b, strict=True):
        for i in range(3):
            vectors = []
            for m in (x[i] ** 2, y[i] ** 2):
                over_width = [m[c, h, :].sum() for c in range(m.shape[0]) for h in range(m.shape[1])]
                over_height = [m[c, :, w].sum() for c in range(m.shape[0]) for w in range(m.shape[2])]
                vectors.append(unit(np.array(over_width + over_height)))
            losses.append(np.linalg.norm(vectors[0] - vectors[1]))
    got = pod_spatial([tensor(x) for x in a], [tensor(y) for y in b]).item()
    assert got == pytest.approx(np.mean(losses))


def test_equal_maps_give_no_loss_and_no_nan() -> None:
    x = torch.rand(2, 3, 4, 4, requires_grad=True)
    loss = pod_spatial([x], [x.detach()]) + discrepancy([x], [x.detach()], [torch.ones(3)])
    assert torch.isfinite(torch.autograd.grad(loss, x)[0]).all()


def test_direction_is_one_minus_the_cosine() -> None:
    f, g = RNG.normal(size=(4, 6)), RNG.normal(size=(4, 6))
    expected = np.mean([1 - unit(a) @ unit(b) for a, b in zip(f, g, strict=True)])
    assert direction(tensor(f), tensor(g)).item() == pytest.approx(expected)


def test_discrepancy_weights_channels_by_importance() -> None:
    a, b = maps((2, 3, 2, 2), (2, 4, 1, 2)), maps((2, 3, 2, 2), (2, 4, 1, 2))
    importance = [np.array([0.5, 2.0, 0.5]), np.array([1.0, 0.0, 3.0, 0.0])]
    per_map = []
    for x, y, w in zip(a, b, importance, strict=True):
        values = [
            w[c] * np.linalg.norm(unit(x[i, c].ravel() ** 2) - unit(y[i, c].ravel() ** 2))
            for i in range(x.shape[0])
            for c in range(x.shape[1])
        ]
        per_map.append(np.mean(values))
    got = discrepancy([tensor(x) for x in a], [tensor(y) for y in b], [tensor(w) for w in importance]).item()
    assert got == pytest.approx(np.mean(per_map))


def test_proxies_score_by_the_softmax_weighted_sum_of_their_cosines() -> None:
    head = CosineHead(6, 2, proxies=3).double()
    head.grow(3)
    head.double()
    with torch.no_grad():
        head.scale.fill_(1.7)
    f = RNG.normal(size=(4, 6))
    weights = torch.cat(head.weights).detach().numpy()
    expected = np.zeros((4, 3))
    for i in range(4):
        for c in range(3):
            s = np.array([unit(f[i]) @ unit(w) for w in weights[3 * c : 3 * c + 3]])
            expected[i, c] = 1.7 * (softmax(s) * s).sum()
    np.testing.assert_allclose(head(tensor(f)).detach().numpy(), expected)


def test_effective_weights_are_inverse_effective_numbers_scaled_to_the_classes() -> None:
    counts, beta = np.array([20, 20, 500]), 0.97
    raw = [(1 - beta) / (1 - beta**n) for n in counts]
    expected = [w * 3 / sum(raw) for w in raw]
    np.testing.assert_allclose(effective_weights(tensor(counts), beta).numpy(), expected, rtol=1e-5)


def test_balanced_distillation_reweights_the_teacher() -> None:
    z, teacher, w = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4)), np.array([0.5, 1.5, 1.0, 1.0])
    expected = 0.0
    for i in range(3):
        target = softmax(teacher[i] / 2) * w
        target = target / target.sum()
        expected -= sum(target[k] * math.log(softmax(z[i] / 2)[k]) for k in range(4)) / 3
    assert balanced_distillation(tensor(z), tensor(teacher), tensor(w), 2.0).item() == pytest.approx(expected)


def test_the_separated_softmax_lets_each_side_compete_among_itself() -> None:
    z, y, old = RNG.normal(size=(6, 5)), np.array([0, 1, 2, 3, 4, 1]), 2
    total = 0.0
    for row, label in zip(z, y, strict=True):
        side = row[:old] if label < old else row[old:]
        total -= math.log(softmax(side)[label if label < old else label - old])
    got = learner("ssil").separated(tensor(z), tensor(y), old).item()
    assert got == pytest.approx(total / 6)


def test_task_distillation_is_the_kullback_leibler_divergence_times_the_squared_temperature() -> None:
    z, teacher = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
    expected = 0.0
    for i in range(3):
        q, p = softmax(teacher[i] / 1.5), softmax(z[i] / 1.5)
        expected += 1.5**2 * sum(q[k] * math.log(q[k] / p[k]) for k in range(4)) / 3
    got = learner("ssil", temperature=1.5).task_distillation(tensor(z), tensor(teacher)).item()
    assert got == pytest.approx(expected)


@pytest.mark.parametrize("new", [1, 3])
def test_the_margin_ranking_pushes_exemplars_from_their_strongest_new_rivals(new: int) -> None:
    old = 2
    cosines = RNG.uniform(-1, 1, (5, old + new))
    labels = np.array([0, 1, 2, 1, 2])
    terms = []
    for row, label in zip(cosines, labels, strict=True):
        if label < old:
            rivals = sorted(row[old:], reverse=True)[:2]
            terms += [np.mean([max(0.0, 0.5 - row[label] + r) for r in rivals])]
    got = learner("lucir", margin=0.5).margin_ranking(tensor(cosines), tensor(labels), old).item()
    assert got == pytest.approx(np.mean(terms))


def test_without_exemplars_there_is_no_margin_loss() -> None:
    got = learner("lucir").margin_ranking(torch.rand(3, 4), torch.tensor([2, 3, 3]), 2)
    assert got.item() == 0.0


@pytest.mark.parametrize("published", [False, True])
def test_the_energy_loss_targets_the_labels_forward_logit(published: bool) -> None:
    trained, forward = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 5))
    labels, own = np.array([0, 4, 3]), np.array([0, 3, 2])
    rows = []
    for i in range(3):
        z = np.concatenate([trained[i], forward[i]])
        if published:
            z[own] = 1e-9
        else:
            z[own[i]] = -np.inf
        rows.append(-math.log(softmax(z)[4 + labels[i]]))
    model = learner("beef", as_published=published)
    got = model.energy_loss(tensor(trained), tensor(forward), tensor(labels), tensor(own)).item()
    assert got == pytest.approx(np.mean(rows))
