from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from suite.errors import DataError, UsageError
from suite.weights import KNOWN, add, fetch, find, listed, verify, weights_folder, weights_root
from suite.weights.manifest import WeightsManifest
from suite.weights.store import WEIGHTS_VARIABLE

DESCRIBED = {"backbone": json.dumps({"input": {"size": 16}, "patch": 8, "width": 4, "depth": 1, "heads": 1})}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "given.safetensors"
    save_file({"cls_token": np.ones((1, 1, 4), np.float16), "pos": np.zeros((5, 4), np.float16)}, path, DESCRIBED)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "weights"


def test_added_weights_are_found_listed_and_verified(file: Path, root: Path) -> None:
    added = add("mine", file, root, licence="MIT", source="here")
    assert added.path.read_bytes() == file.read_bytes()
    assert added.manifest.parameters == 24
    assert find("mine", root) == added == verify("mine", root)
    (info,) = [i for i in listed(root) if i.name == "mine"]
    assert (info.is_here, info.licence, info.source, info.parameters) == (True, "MIT", "here", 24)


def test_a_folder_to_mount_holds_one_file_of_weights(file: Path, root: Path) -> None:
    add("one", file, root)
    add("other", file, root)
    assert sorted(p.name for p in weights_folder("one", root).iterdir()) == ["manifest.json", "one.safetensors"]


def test_known_weights_are_listed_before_they_are_here(root: Path) -> None:
    by_name = {info.name: info for info in listed(root)}
    assert set(KNOWN) <= set(by_name)
    assert not any(by_name[name].is_here for name in KNOWN)
    assert all(info.licence and info.source for info in by_name.values())


def test_damage_is_found(file: Path, root: Path) -> None:
    path = add("mine", file, root).path
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    find("mine", root)  # the size is right
    with pytest.raises(DataError, match=r"damaged.*differs from its manifest.*Delete .* and add a file of them"):
        verify("mine", root)
    path.write_bytes(content[:-1])
    with pytest.raises(DataError, match="damaged"):
        find("mine", root)


def test_the_same_weights_may_be_added_twice_but_not_others(file: Path, root: Path, tmp_path: Path) -> None:
    assert add("mine", file, root) == add("mine", file, root)
    other = tmp_path / "other.safetensors"
    save_file({"cls_token": np.zeros((1, 1, 4), np.float32)}, other, DESCRIBED)
    with pytest.raises(DataError, match="Other weights are stored as 'mine'"):
        add("mine", other, root)


@pytest.mark.parametrize("name", ["nothing", next(iter(KNOWN))])
def test_absent_weights_say_how_to_get_them(name: str, root: Path) -> None:
    with pytest.raises(DataError) as caught:
        find(name, root)
    assert f"suite weights {'fetch' if name in KNOWN else 'add'} {name}" in caught.value.remedy


def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(b"\x80\x04pickle")
    with pytest.raises(DataError, match="no readable safetensors file"):
        add("mine", path, root)
    save_file({"a": np.zeros(1)}, path, {"backbone": "[1]"})
    with pytest.raises(DataError, match=r"description in .* is malformed"):
        add("mine", path, root)


def test_a_file_without_description_must_be_of_timm(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "plain.safetensors"
    save_file({"a": np.zeros(1)}, path)
    with pytest.raises(DataError, match="does not hold the weights 'mine' of timm"):
        add("mine", path, root)


def test_unknown_weights_cannot_be_fetched(root: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be fetched.*Known are: vit_base"):
        fetch("resnet", root)


def test_without_a_network_the_steps_are_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import timm

    def offline(*_: Any, **__: Any) -> None:
        raise OSError("no network")

    monkeypatch.setattr(timm, "create_model", offline)
    name = "vit_base_patch16_224.augreg_in21k"
    with pytest.raises(DataError) as caught:
        fetch(name, root)
    assert KNOWN[name].source in caught.value.remedy
    assert f"suite weights add {name} --from FILE" in caught.value.remedy
    assert "Apache-2.0" in caught.value.remedy


def test_a_published_file_of_timm_is_stored_in_its_own_layout(root: Path, tmp_path: Path) -> None:
    """Head dropped, description added; what a learner image reads is what was published."""
    import timm
    from reference.vit import read_backbone
    from safetensors.torch import load_file
    from safetensors.torch import save_file as save_torch

    name = "vit_tiny_patch16_224.augreg_in21k"
    model = timm.create_model(name, pretrained=False)
    published = tmp_path / "model.safetensors"
    save_torch(model.state_dict(), published)
    stored = add(name, published, root, licence="Apache-2.0")
    kept = load_file(stored.path)
    assert not any(key.startswith("head") for key in kept)
    assert stored.manifest.parameters == sum(v.numel() for v in kept.values())
    backbone = read_backbone(name, stored.path)
    assert backbone.preprocess.size == 224
    assert all((backbone.vit.state_dict()[key] == model.state_dict()[key]).all() for key in kept)


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(WEIGHTS_VARIABLE, str(tmp_path))
    assert weights_root() == tmp_path
    monkeypatch.delenv(WEIGHTS_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert weights_root() == Path("/somewhere/continual-suite/weights")


def test_a_manifest_is_one_line_of_canonical_json(file: Path, root: Path) -> None:
    manifest = add("mine", file, root).manifest
    assert WeightsManifest.model_validate_json(manifest.to_json()) == manifest
    assert manifest.to_json().count("\n") == 1
