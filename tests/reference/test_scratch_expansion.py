"""Networks that expand: DER, MEMO, FOSTER, BEEF."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from reference.methods import foster
from reference.methods.beef import FusionLayers
from reference.methods.foster import BoostedNetwork
from torch import nn

from tests.reference.cases import (
    TASK_1,
    TASK_2,
    after_first,
    batch_of,
    ce,
    enlarged,
    kd,
    learner,
    make_task,
    parameters,
    scores,
    softmax,
    unchanged,
)


def double(value: Any) -> np.ndarray:
    return np.asarray(value.detach().double())


def test_der_trains_the_newest_branch_and_never_touches_the_old() -> None:
    model = after_first("der")
    old = parameters(model.network.branches[0])
    model.learn(TASK_2)
    assert unchanged(old, model.network.branches[0])
    assert not unchanged(old, model.network.branches[1])
    assert model.network.head.weight.shape == (5, 128)


def test_der_adds_the_auxiliary_loss_over_old_and_each_new_class() -> None:
    model, _, batch = enlarged("der", lambda_aux=3)
    auxiliary = nn.Linear(64, 4)
    features = scores(model.network.features, batch)
    targets = [0 if y < 2 else y - 1 for y in batch.labels.tolist()]
    aux = features[:, 64:] @ double(auxiliary.weight).T + double(auxiliary.bias)
    expected = ce(scores(model.network, batch), batch.labels) + 3 * ce(aux, targets)
    assert model.loss(batch, 2, auxiliary).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("trains", [True, False])
def test_memo_shares_its_general_blocks_and_specialises_the_last_stage(trains: bool) -> None:
    model = after_first("memo", train_general=trains)
    special, general = parameters(model.network.branches[0]), parameters(model.network.general)
    model.learn(TASK_2)
    assert unchanged(special, model.network.branches[0])
    assert not unchanged(special, model.network.branches[1])
    assert unchanged(general, model.network.general) is not trains


def test_memo_extracts_features_in_batches_of_its_own_size() -> None:
    assert learner("memo", exemplar_batch_size=64).eval_batch == 64
    assert learner("der").eval_batch == 256


def test_foster_boosts_beside_a_frozen_network() -> None:
    model = after_first("foster", beta1=0.97, temperature=2, lambda_fe=0.5, lambda_kd=3)
    boosted = BoostedNetwork(model.network, 5).train()
    assert not boosted.old.training
    assert boosted.new.training
    trained = {name for name, p in boosted.named_parameters() if p.requires_grad}
    assert all(name.startswith(("new.", "head.")) for name in trained)
    batch = model.pool((TASK_2.images, TASK_2.labels)).batch(torch.arange(0, 27, 2))
    extra = nn.Linear(64, 5)
    weights = torch.tensor([1.5, 1.5, 0.7, 0.7, 0.6])
    f_old, f_new = scores(boosted.old.backbone, batch), scores(boosted.new, batch)
    z = np.concatenate([f_old, f_new], 1) @ double(boosted.head.weight).T + double(boosted.head.bias)
    expected = ce(z / double(weights), batch.labels)
    expected += 0.5 * ce(f_new @ double(extra.weight).T + double(extra.bias), batch.labels)
    expected += 3 * kd(z[:, :2], scores(boosted.old, batch), 2)
    got = model.boosting_loss(boosted, extra, batch, weights)
    assert got.item() == pytest.approx(expected, rel=1e-4)
    got.backward()
    reached = {name for name, p in boosted.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    assert reached == trained


def test_foster_weights_classes_by_how_many_images_it_trains_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model = after_first("foster")
    seen: list[list[int]] = []
    monkeypatch.setattr(model, "boost", lambda boosted, pool, recipe, counts: seen.append(counts.tolist()))
    model.memory.reduce(4)
    model.learn(TASK_2)
    assert seen == [[4, 4, 9, 9, 9]]


def test_foster_compresses_into_one_backbone_the_size_of_the_old_one() -> None:
    model = after_first("foster", model="student")
    size = sum(p.numel() for p in model.network.backbone.parameters())
    model.learn(TASK_2)
    assert model.boosted is None
    assert sum(p.numel() for p in model.network.parameters()) == size + 65 * 5
    assert model.embed(TASK_1.images).shape == (18, 64)
    model.learn(make_task(2, [5]))
    assert sum(p.numel() for p in model.network.parameters()) == size + 65 * 6


def test_a_foster_that_keeps_only_the_student_comes_back_from_its_state() -> None:
    model, copy = after_first("foster", model="student"), learner("foster", model="student")
    model.learn(TASK_2)
    for _ in range(2):  # a second time over a learner that has grown already
        copy.load_state_dict(model.state_dict())
        np.testing.assert_array_equal(copy.predict(TASK_1.images), model.predict(TASK_1.images))


def test_foster_scores_with_two_branches_and_starts_the_next_task_from_the_student() -> None:
    model = after_first("foster")
    old = parameters(model.network.backbone)
    model.learn(TASK_2)
    assert unchanged(old, model.boosted.old.backbone)
    assert model.embed(TASK_1.images).shape == (18, 128)
    student = parameters(model.network.backbone)
    assert not unchanged(old, model.network.backbone)
    model.learn(make_task(2, [5]))
    assert unchanged(student, model.boosted.old.backbone)


def test_the_student_learns_to_answer_as_the_two_branches_do() -> None:
    model = after_first("foster", post_ft_epochs=15, lr=0.05, batch_size=16, augmentation="none", temperature=1)
    model.enlarge(TASK_2.classes)
    pool = model.pool((TASK_2.images, TASK_2.labels))
    boosted = model.boosted.eval()
    with torch.no_grad():
        boosted.head.weight[2:] *= 10  # a teacher with an opinion
    teacher = parameters(boosted)
    seen: list[float] = []
    model.progress = lambda epoch, epochs, note, loss: seen.append(loss)
    model.compress(boosted, pool, model.recipe, torch.tensor([9] * 5))  # equal counts: plain distillation
    assert unchanged(teacher, boosted)
    answers = scores(boosted, batch_of(model, TASK_2))
    entropy = kd(answers, answers, 1)
    assert entropy * 0.99 < seen[-1] < seen[0]


def test_foster_compresses_without_weight_decay_and_weights_each_stage_by_its_own_beta(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    betas: list[float] = []
    stages: list[tuple[str, int, float]] = []
    weigh = foster.effective_weights

    def weighed(counts: torch.Tensor, beta: float) -> torch.Tensor:
        betas.append(beta)
        return weigh(counts, beta)

    monkeypatch.setattr(foster, "effective_weights", weighed)
    model = after_first("foster", beta1=0.95, beta2=0.99, weight_decay=0.005, epochs=2, post_ft_epochs=3)
    fit = model.fit

    def watch(pool: Any, loss: Any, recipe: Any, **options: Any) -> None:
        stages.append((recipe.schedule.kind, recipe.schedule.epochs, recipe.weight_decay))
        fit(pool, loss, recipe, **options)

    monkeypatch.setattr(model, "fit", watch)
    model.learn(TASK_2)
    assert betas == [0.95, 0.99]
    assert stages == [("step", 2, 0.005), ("cosine", 3, 0.0)]


# --- BEEF -------------------------------------------------------------------------------------------------------------


def beef_in_task_2(**overrides: Any) -> tuple[Any, Any, list[int]]:
    model = after_first("beef", **overrides)
    model.enlarge(TASK_2.classes)
    return model, model.new_module([2], 2), [2]


def test_beef_relabels_old_classes_by_their_task() -> None:
    model = learner("beef")
    model.seen = 7
    assert model.relabelling([2, 3], 5).tolist() == [0, 0, 1, 1, 1, 2, 3]


def test_beef_starts_every_backbone_from_the_first_one() -> None:
    model = after_first("beef")
    model.enlarge([2])
    with torch.no_grad():
        for p in model.network.branches[1].parameters():
            p.add_(1)
    model.enlarge([3])
    assert unchanged(parameters(model.network.branches[0]), model.network.branches[2])


def test_beef_divides_backward_logits_by_the_alignment() -> None:
    model, module, _ = beef_in_task_2(logit_alignment=1.7)
    f = torch.randn(4, 64)
    trained, forward = model.logits(f, module)
    assert trained.shape == (4, 1 + 3)
    assert forward.shape == (4, 5)
    torch.testing.assert_close(trained[:, :1], module.backward(f) / 1.7)
    torch.testing.assert_close(trained[:, 1:], module.new(f))


def test_beef_adds_the_weighted_energy_of_its_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    model, module, _ = beef_in_task_2(energy_weight=0.5, logit_alignment=2.0)
    branch = model.network.branches[-1].train()
    batch = batch_of(model, TASK_2)
    samples = batch.images.flip(3)
    monkeypatch.setattr(model, "sample", lambda images, branch, module: samples)
    targets = torch.tensor([0, 0, 1, 2, 3])
    with torch.no_grad():
        z, fz = double(branch(batch.images)), double(branch(samples))
    heads = [(double(h.weight), double(h.bias)) for h in (module.backward, module.new, module.forward)]

    def outputs(f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        backward, new, forward = (f @ w.T + b for w, b in heads)
        return np.concatenate([backward / 2, new], 1), forward

    y = batch.labels.numpy()
    energy = []
    for trained, forward, label in zip(*outputs(fz), y, strict=True):
        logits = np.concatenate([trained, forward])
        logits[targets[label]] = -np.inf
        energy.append(-math.log(np.exp(logits[4 + label]) / np.exp(logits).sum()))
    expected = ce(outputs(z)[0], targets[y]) + 0.5 * np.mean(energy)
    loss = model.expansion_loss(batch, branch, module, targets)
    assert loss.item() == pytest.approx(expected, rel=1e-4)


class _Linear(nn.Module):
    """A branch whose gradients can be written down."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 48) / 20)

    def forward(self, x: torch.Tensor) -> Any:
        return x.flatten(1) @ self.weight.T


def test_beef_samples_by_three_descents_from_the_images_turned_by_180_degrees(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model, module, _ = beef_in_task_2(logit_alignment=2.0)
    monkeypatch.setattr("reference.methods.beef.SAMPLING_NOISE", 0.0)
    branch, images = _Linear(), torch.randn(5, 3, 4, 4)
    samples = model.sample(images, branch, module)
    assert branch.training
    assert not samples.requires_grad
    backward, new, forward = (double(h.weight) for h in (module.backward, module.new, module.forward))
    heads = np.concatenate([backward / 2, new, forward]) @ double(branch.weight)
    x = np.stack([np.rot90(image, 2, (1, 2)) for image in images.double().numpy()]).reshape(5, 48)
    for _ in range(3):
        p = softmax(x @ heads.T)  # the heads' biases are zero
        mass = p[:, 4:].sum(1, keepdims=True)
        of_logits = -p * ((np.arange(9) >= 4) - mass) / mass.sum()
        x = x - 0.01 * of_logits @ heads
    np.testing.assert_allclose(samples.reshape(5, 48), x, rtol=1e-4, atol=1e-6)
    assert np.abs(x - images.flip((2, 3)).reshape(5, 48).numpy()).max() > 1e-5


def test_beef_expands_without_touching_old_branches_and_fuses_with_two_parameters_a_task() -> None:
    model, module, sizes = beef_in_task_2()
    old = parameters(model.network.branches[0])
    fusion = FusionLayers(1)
    model.expand(TASK_2, module, sizes, 2, model.recipe)
    assert unchanged(old, model.network.branches[0])
    newest, heads = parameters(model.network.branches[1]), [p.detach().clone() for p in module.parameters()]
    model.fuse(TASK_2, module, fusion, sizes, model.recipe)
    assert unchanged(newest, model.network.branches[1])
    assert all(torch.equal(a, b) for a, b in zip(heads, module.parameters(), strict=True))
    assert sum(p.numel() for p in fusion.parameters()) == 2
    assert fusion.scale.item() != 0
    assert fusion.shift.item() != 0


def test_beef_merges_into_one_head_that_says_what_the_parts_said() -> None:
    model, module, sizes = beef_in_task_2()
    fusion = FusionLayers(1)
    with torch.no_grad():
        fusion.scale.fill_(0.3)
        fusion.shift.fill_(-0.4)
        model.network.head.bias[:2].uniform_(-1, 1)
        for head in (module.new, module.backward):
            head.bias.uniform_(-1, 1)
    features = torch.randn(6, 128)
    w, b, f = double(model.network.head.weight), double(model.network.head.bias), double(features)
    back = 1.3 * (f[:, 64:] @ double(module.backward.weight).T + double(module.backward.bias)) - 0.4
    new = f[:, 64:] @ double(module.new.weight).T + double(module.new.bias)
    expected = np.concatenate([f[:, :64] @ w[:2, :64].T + b[:2] + back, new], 1)
    composed = model.compose(features, module, fusion, sizes)
    np.testing.assert_allclose(composed.detach(), expected, rtol=1e-4, atol=1e-4)
    model.merge(module, fusion, sizes)
    np.testing.assert_allclose(model.network.head(features).detach(), expected, rtol=1e-4, atol=1e-4)


def test_beef_as_published_forgets_the_old_bias_while_fusing() -> None:
    model, module, sizes = beef_in_task_2(as_published=True)
    features = torch.randn(3, 128)
    without = model.compose(features, module, FusionLayers(1), sizes).detach()
    with torch.no_grad():
        model.network.head.bias[:2] += 5
    torch.testing.assert_close(model.compose(features, module, FusionLayers(1), sizes).detach(), without)
    model.options["as_published"] = False
    mended = model.compose(features, module, FusionLayers(1), sizes).detach()
    bias = model.network.head.bias.detach()
    torch.testing.assert_close((mended - without)[:, :2], bias[:2].expand(3, -1), rtol=1e-4, atol=1e-4)
    assert (mended - without)[:, 2:].abs().max() == 0
