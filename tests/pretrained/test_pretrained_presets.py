from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from reference import presets
from reference.catalogue import PRETRAINED

from suite.sdk.server import load_class

FOLDER = Path(next(iter(presets.__path__)))
FILES = sorted(path for slug in PRETRAINED for path in (FOLDER / slug).glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_preset_names_what_its_method_takes(path: Path) -> None:
    load_class(PRETRAINED[path.parent.name]).space.check_names(tomllib.loads(path.read_text()))


@pytest.mark.parametrize("slug", sorted(set(PRETRAINED) - {"simplecil"}))
def test_every_method_with_hyperparameters_has_its_original_ones(slug: str) -> None:
    assert (FOLDER / slug / "original.toml").is_file()


def test_gtep_selected_for_eight_scenarios() -> None:
    for slug in ("l2p", "dualprompt", "coda_prompt", "adam_adapter", "ranpac", "ease"):
        assert len(list((FOLDER / slug).glob("*tasks.toml"))) == 8
