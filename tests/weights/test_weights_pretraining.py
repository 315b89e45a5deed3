"""The shipped weights, and that pretraining is reproducible."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from reference.vit import read_backbone

from suite.data import ClassPlan, DataSet, Origin, Plan, write_data_set
from suite.data.glyphs.masters import load_masters
from suite.data.glyphs.render import render
from suite.data.glyphs.sets import glyph_sets
from suite.weights import Recipe, find, overlap, pretrain, verify
from suite.weights.network import ARCHITECTURE, build
from suite.weights.pretraining import strokes

SMALL = Recipe(passes=128, batch=16)
TRACKS = ("letters-1", "letters-2", "symbols")


@pytest.fixture
def nothing_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SUITE_WEIGHTS", str(tmp_path / "weights"))
    return tmp_path / "weights"


@pytest.fixture(scope="module")
def two_glyphs(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    names = glyph_sets()["letters-1"][:2]
    origin = Origin(source="test", licence="OFL-1.1", split="seeded")
    plan = Plan("two", 1, 32, [ClassPlan(n, 20, 5) for n in names], origin)
    images = [render(n, m, 25, 32, "ink", 0) for n, m in zip(names, load_masters(names), strict=True)]

    def fill(writer: object) -> None:
        for index, rows in enumerate(images):
            writer.put("train", index, 0, rows[:20])  # type: ignore[attr-defined]
            writer.put("test", index, 0, rows[20:])  # type: ignore[attr-defined]

    return write_data_set(tmp_path_factory.mktemp("data") / "two", plan, fill)


def test_pretraining_twice_gives_the_same_file(two_glyphs: DataSet, tmp_path: Path) -> None:
    first = pretrain(two_glyphs, "small", tmp_path / "a", SMALL)
    torch.rand(3)  # other draws in between must not matter
    second = pretrain(two_glyphs, "small", tmp_path / "b", SMALL)
    assert first.manifest.sha256 == second.manifest.sha256
    assert first.manifest.pretraining is not None
    assert first.manifest.pretraining.classes == two_glyphs.class_names
    assert first.manifest.pretraining.data_sha256 == two_glyphs.sha256


def test_pretraining_leaves_the_callers_random_numbers_alone(two_glyphs: DataSet, tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    pretrain(two_glyphs, "small", tmp_path, SMALL)
    assert torch.equal(torch.rand(2), expected)


def test_steps_are_reported(two_glyphs: DataSet, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    pretrain(two_glyphs, "small", tmp_path, SMALL, lambda done, total, _loss: told.append((done, total)))
    assert told == [(8, 8)]


def test_learners_build_the_network_that_was_pretrained(two_glyphs: DataSet, tmp_path: Path) -> None:
    """The file describes itself: the reading side has its own code, and gets the same features."""
    stored = pretrain(two_glyphs, "small", tmp_path, SMALL)
    backbone = read_backbone("small", stored.path)
    network = build(ARCHITECTURE, 0).eval()
    network.load_state_dict(backbone.vit.state_dict())
    pixels = torch.randn(2, 3, 32, 32)
    assert torch.equal(backbone(pixels), network(pixels))


def test_strokes_do_not_depend_on_colour_or_polarity() -> None:
    shape = torch.zeros(1, 1, 8, 8)
    shape[..., 3:5, 2:6] = 1
    dark = 0.9 - 0.6 * shape.expand(-1, 3, -1, -1)
    bright = 0.1 + 0.3 * shape * torch.tensor([1.0, 0.5, 0.2]).view(1, 3, 1, 1)
    for image in (dark, bright):
        np.testing.assert_allclose(strokes(image), shape.expand(-1, 3, -1, -1), atol=1e-4)


def test_the_shipped_weights_are_whole_small_and_disjoint_from_the_tracks(nothing_stored: Path) -> None:
    weights = verify("vit_glyph")
    assert weights.path.stat().st_size < 8_000_000
    assert 1_000_000 <= weights.manifest.parameters <= 3_000_000
    seen = weights.manifest.pretraining
    assert seen is not None
    assert len(seen.classes) == len(glyph_sets()["glyphs-pretrain"])
    for track in TRACKS:
        assert overlap(weights.manifest, glyph_sets()[track]).shared == ()


def test_the_shipped_weights_tell_glyphs_apart_that_they_have_never_seen(nothing_stored: Path) -> None:
    """Nearest class mean over 20 new classes, against the same network before pretraining."""

    def nearest_mean(network: torch.nn.Module, images: torch.Tensor) -> float:
        with torch.no_grad():
            features = torch.nn.functional.normalize(network(images), dim=1).reshape(20, 20, -1)
        means = torch.nn.functional.normalize(features[:, :10].mean(1), dim=1)
        return float(
            (torch.einsum("cnd,kd->cnk", features[:, 10:], means).argmax(2) == torch.arange(20)[:, None]).float().mean()
        )

    names = glyph_sets()["letters-2"][::10][:20]
    rendered = np.stack([render(n, m, 20, 32, "ink", 0) for n, m in zip(names, load_masters(names), strict=True)])
    backbone = read_backbone("vit_glyph", find("vit_glyph").path)
    images = backbone.preprocess.test(torch.from_numpy(rendered.reshape(-1, 32, 32, 3)))
    torch.manual_seed(0)
    assert nearest_mean(backbone, images) > nearest_mean(build(ARCHITECTURE, 0).eval(), images) + 0.3
