"""L2P, DualPrompt, CODA-Prompt, PGP and LAE: what is special about each, against formulas written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reference.pretrained.coda_prompt import CodaPrompt, ComponentPool, orthonormal
from reference.pretrained.dualprompt import DualPrompt
from reference.pretrained.l2p import L2P
from reference.pretrained.lae import LAE
from reference.pretrained.pgp import PGP, extended
from reference.pretrained.prompts import PromptPool, prefixes, reshaped_literally
from reference.vit import run

from suite.protocol.errors import SuiteError
from tests.pretrained.cases import POINTS
from tests.pretrained.conftest import TASKS, Bring, learn, make_task, predict


def test_every_sample_chooses_its_own_prompts() -> None:
    pool = PromptPool(4, 2, 3)
    with torch.no_grad():
        pool.keys.copy_(torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]]))
    queries = torch.tensor([[3.0, 2, 0], [0, 0.1, 5]])
    tokens, pull = pool.choose(queries, 2)
    for row, chosen in enumerate(([0, 1], [2, 1])):
        torch.testing.assert_close(tokens[row], pool.prompts[chosen].reshape(4, 3))
    cosines = [3 / 13**0.5, 2 / 13**0.5, 5 / 25.01**0.5, 0.1 / 25.01**0.5]
    assert float(pull.detach()) == pytest.approx(sum(cosines) / 2)


def test_l2p_reads_the_prompts_outputs(bring: Bring) -> None:
    learner = bring(L2P, **POINTS["l2p"])
    learn(learner, TASKS[0])
    assert isinstance(learner, L2P)
    pixels = next(learner.batches(TASKS[0].images[:2]))
    tokens, _ = learner.network.body.choose(learner.backbone(pixels), 2)
    position = learner.backbone.vit.get_parameter("pos_embed")[:, :1]
    out = run(learner.backbone.vit, pixels, prompts=tokens + position)
    torch.testing.assert_close(learner.features(pixels), out[:, 1:5].mean(1))


def test_the_literal_reshape_mixes_keys_values_and_samples() -> None:
    """As executed with a public port: of four samples the first two get (K, K), the others (V, V)."""
    keys, values = torch.ones(1, 1, 4, 2, 3), 2 * torch.ones(1, 1, 4, 2, 3)
    literal = reshaped_literally(torch.cat([keys, values], 1))
    for sample, expected in enumerate((1, 1, 2, 2)):
        assert (literal[0, :, sample] == expected).all()
    permuted = prefixes([0], torch.cat([keys, values], 1))[0].prefix
    assert permuted is not None
    assert (permuted[0] == 1).all()
    assert (permuted[1] == 2).all()


def test_the_literal_reshape_is_an_option(bring: Bring) -> None:
    learner = bring(DualPrompt, **POINTS["dualprompt"] | {"prefix": "literal"})
    learn(learner, TASKS[0])
    assert np.isfinite(predict(learner, TASKS[0].images)).all()


def test_a_task_trains_its_own_prompt_which_begins_where_the_last_one_ended(bring: Bring) -> None:
    learner = bring(DualPrompt, **POINTS["dualprompt"] | {"pool_size": 4})
    assert isinstance(learner, DualPrompt)
    learn(learner, TASKS[0])
    before = learner.network.body.prompts().detach().clone()
    learn(learner, make_task(1, [3, 4]))
    after = learner.network.body.prompts().detach()
    unmoved = [torch.equal(before[:, :, i], after[:, :, i]) for i in range(4)]
    assert unmoved == [True, False, True, True]
    distance = (after[:, :, 1] - before[:, :, 0]).abs().mean()
    assert distance < (after[:, :, 1] - before[:, :, 1]).abs().mean()


def test_test_time_keys_are_those_of_the_tasks_so_far(bring: Bring) -> None:
    learner = bring(DualPrompt, **POINTS["dualprompt"] | {"pool_size": 9})
    assert isinstance(learner, DualPrompt)
    learn(learner, TASKS[0])
    assert (learner.choice(torch.randn(50, learner.width)) == 0).all()


def test_coda_prompts_are_weighted_sums_of_components() -> None:
    torch.manual_seed(0)
    pool = ComponentPool(blocks=2, length=4, width=6)
    pool.open(3)
    pool.open(2)
    for parameter in pool.parameters():
        torch.nn.init.normal_(parameter)
    q = torch.randn(5, 6)
    prompts = pool.prompts(q).detach()
    p, k, a = (pool.all(name).detach() for name in "pka")
    for block in range(2):
        for b in range(5):
            expected = sum(
                torch.cosine_similarity(q[b] * a[block, m], k[block, m], dim=0) * p[block, m].reshape(4, 6)
                for m in range(5)
            )
            assert isinstance(expected, torch.Tensor)
            torch.testing.assert_close(prompts[block, 0, b], expected[:2], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(prompts[block, 1, b], expected[2:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("earlier", "fresh", "width"), [(0, 4, 9), (5, 4, 9), (7, 4, 9), (12, 3, 9)])
def test_new_components_are_orthonormal_as_far_as_there_is_room(earlier: int, fresh: int, width: int) -> None:
    torch.manual_seed(0)
    old = torch.randn(earlier, width)
    new = orthonormal(old, torch.rand(fresh, width))
    torch.testing.assert_close(new.norm(dim=1), torch.ones(fresh))
    room = min(fresh, max(0, width - earlier))
    torch.testing.assert_close(new[:room] @ new[:room].T, torch.eye(room), atol=1e-5, rtol=0)
    torch.testing.assert_close(new[:room] @ old.T, torch.zeros(room, earlier), atol=1e-5, rtol=0)


def test_earlier_components_do_not_move(bring: Bring) -> None:
    learner = bring(CodaPrompt, **POINTS["coda_prompt"])
    assert isinstance(learner, CodaPrompt)
    learn(learner, TASKS[0])
    before = learner.network.body.all("k").detach().clone()
    learn(learner, make_task(1, [3, 4]))
    assert torch.equal(learner.network.body.all("k")[:, : before.shape[1]], before)
    assert not any(p.requires_grad for p in learner.network.body.groups[0].parameters())


def test_projected_prompts_do_not_move_along_what_earlier_tasks_use(bring: Bring) -> None:
    """With SGD and no decay, the change of the keys lies outside the space of the first task."""
    learner = bring(PGP, **POINTS["pgp"] | {"optimizer": "sgd", "weight_decay": 0, "lr": 0.05})
    assert isinstance(learner, PGP)
    learn(learner, TASKS[0])
    bases = dict(learner.bases)
    g, keys = learner.network.body.g.detach().clone(), learner.network.body.key_matrix().detach().clone()
    learn(learner, make_task(1, [3, 4]))
    moved = learner.network.body.g.detach()[0, 0, 0] - g[0, 0, 0]
    assert moved.abs().max() > 0
    assert (moved @ bases["0"]).abs().max() < 1e-5
    towards = learner.network.body.key_matrix().detach()[1] - keys[0]  # the second task's key began as the first's
    assert (towards @ bases["keys"]).abs().max() < 1e-4
    assert (learner.network.body.g.detach()[0, 1] - g[0, 1]).abs().max() > 0


@pytest.mark.parametrize("energy", [0.5, 0.97])
def test_a_basis_holds_the_wanted_energy_and_not_a_direction_more(energy: float) -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=(40, 12)) * np.linspace(3, 0.1, 12) for _ in range(2))
    basis = extended(torch.zeros(12, 0), torch.from_numpy(first).float(), energy).numpy()
    grown = extended(torch.from_numpy(basis), torch.from_numpy(second).float(), energy).numpy()
    for x, u in ((first, basis), (second, grown)):
        np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-5)
        assert np.sum((x @ u) ** 2) >= energy * np.sum(x**2) - 1e-3
    assert np.sum((first @ basis[:, :-1]) ** 2) < energy * np.sum(first**2)
    assert np.array_equal(grown[:, : basis.shape[1]], basis)


def test_the_literal_projection_needs_as_many_images_as_features(bring: Bring) -> None:
    point = POINTS["pgp"] | {"projection": "literal"}
    learn(bring(PGP, **point), make_task(0, [0, 1], each=16))  # 32 images, width 32
    with pytest.raises(SuiteError, match="needs 32 images in each task, and this one has 18"):
        learn(bring(PGP, **point), TASKS[0])


@pytest.mark.parametrize("modules", ["adapter", "lora", "prefix"])
def test_lae_ensembles_online_and_offline(bring: Bring, modules: str) -> None:
    learner = bring(LAE, **POINTS["lae"] | {"modules": modules})
    assert isinstance(learner, LAE)
    learn(learner, TASKS[0])
    learn(learner, make_task(1, [3, 4]))
    pair, head = learner.network.body, learner.network.head
    pixels = next(learner.batches(TASKS[0].images))
    both = [head(learner.through(part, pixels)).softmax(1) for part in (pair.online, pair.offline)]
    torch.testing.assert_close(learner.scores(pixels), torch.maximum(*both))
    assert not torch.equal(*both)


def test_lae_keeps_the_modules_still_while_the_head_learns(bring: Bring) -> None:
    learner = bring(LAE, **POINTS["lae"] | {"frozen_share": 1.0})
    assert isinstance(learner, LAE)
    learn(learner, TASKS[0])
    before = [p.detach().clone() for p in learner.network.body.online.parameters()]
    learn(learner, make_task(1, [3, 4]))
    after = list(learner.network.body.online.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
