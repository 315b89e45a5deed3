from __future__ import annotations

import pytest

from suite.weights import Pretraining, WeightsManifest, overlap


def manifest(**pretraining: object) -> WeightsManifest:
    seen = Pretraining.model_validate({"data_set": "x", **pretraining}) if pretraining else None
    return WeightsManifest(
        name="w", sha256="0" * 64, size_bytes=1, parameters=1, licence="x", source="x", pretraining=seen
    )


def test_names_are_compared_without_case_spaces_and_underscores() -> None:
    found = overlap(manifest(classes=("Polar Bear", "tree_frog")), ["polar_bear", "Tree-Frog", "toad"])
    assert found.shared == ("polar_bear", "Tree-Frog")
    assert found.share == pytest.approx(2 / 3)


def test_imagenet_is_known_by_wordnet_number_and_by_synonym() -> None:
    names = ["n01440764", "n01440764_tench", "goldfish", "tiger shark", "Prothonotary Warbler of nowhere"]
    assert overlap(manifest(vocabulary="imagenet-1k"), names).shared == tuple(names[:4])
    assert overlap(manifest(vocabulary="imagenet-21k"), ["n01440764"]).share == 1


def test_what_is_not_known_is_not_called_disjoint() -> None:
    for unknown in (manifest(), manifest(data_set="secret")):
        found = overlap(unknown, ["a"])
        assert found.shared is None
        assert found.share is None
