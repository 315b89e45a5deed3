"""Attaching to timm's ViT, loading it, and preparing its input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reference.vit import Attached, Preprocess, load_backbone, read_backbone, run
from reference.vit.backbone import Architecture, Input
from safetensors.torch import save_file

from suite.protocol.errors import SuiteError
from suite.sdk import Context
from tests.pretrained.conftest import SIZE, TINY, make_setup


@pytest.fixture
def pixels() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(3, 3, SIZE, SIZE)


def zeros(tokens: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(tokens)


@pytest.mark.parametrize(
    "attached",
    [
        {},
        {0: Attached(mlp=zeros), 1: Attached(attention=zeros)},
        {0: Attached(keys=zeros), 1: Attached(values=zeros)},
        {1: Attached(prefix=(torch.zeros(1, 0, 32), torch.zeros(1, 0, 32)))},
    ],
    ids=["nothing", "adapters", "low rank", "empty prefix"],
)
def test_what_adds_nothing_changes_nothing(weights: Path, pixels: torch.Tensor, attached: dict[int, Attached]) -> None:
    backbone = read_backbone("tiny", weights)
    torch.testing.assert_close(run(backbone.vit, pixels, attached), backbone.vit.forward_features(pixels))


def test_a_prefix_is_more_keys_and_values(weights: Path, pixels: torch.Tensor) -> None:
    """Against attention written out, for the first block."""
    vit: Any = read_backbone("tiny", weights).vit
    keys, values = torch.randn(1, 4, 32), torch.randn(1, 4, 32)
    x = vit._pos_embed(vit.patch_embed(pixels))
    block = vit.blocks[0]
    q, k, v = block.attn.qkv(block.norm1(x)).chunk(3, -1)
    k, v = torch.cat([keys.expand(3, -1, -1), k], 1), torch.cat([values.expand(3, -1, -1), v], 1)
    heads = []
    for part in range(2):
        own = slice(16 * part, 16 * part + 16)
        weights_ = (q[..., own] @ k[..., own].mT / 4).softmax(-1)
        heads.append(weights_ @ v[..., own])
    x = x + block.attn.proj(torch.cat(heads, -1))
    x = x + block.mlp(block.norm2(x))
    expected = vit.norm(vit.blocks[1](x))
    torch.testing.assert_close(run(vit, pixels, {0: Attached(prefix=(keys, values))}), expected, atol=1e-5, rtol=1e-4)


def test_an_adapter_sees_the_stream_before_the_mlp(weights: Path, pixels: torch.Tensor) -> None:
    vit: Any = read_backbone("tiny", weights).vit
    seen: list[torch.Tensor] = []

    def watch(tokens: torch.Tensor) -> torch.Tensor:
        seen.append(tokens)
        return zeros(tokens)

    run(vit, pixels, {0: Attached(mlp=watch)})
    block = vit.blocks[0]
    x = vit._pos_embed(vit.patch_embed(pixels))
    torch.testing.assert_close(seen[0], x + block.attn(block.norm1(x)))


def test_prompts_stand_behind_the_class_token(weights: Path, pixels: torch.Tensor) -> None:
    vit = read_backbone("tiny", weights).vit
    prompts = torch.randn(1, 5, 32)
    out = run(vit, pixels, prompts=prompts)
    assert out.shape == (3, 1 + 5 + 4, 32)
    x = vit._pos_embed(vit.patch_embed(pixels))
    x = torch.cat([x[:, :1], prompts.expand(3, -1, -1), x[:, 1:]], 1)
    torch.testing.assert_close(out, vit.norm(vit.blocks(x)))


@pytest.mark.parametrize("size", [16, 32, 64, 100])
def test_images_of_any_size_become_the_networks_input(size: int) -> None:
    prepare = Preprocess(32, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25), "resized_crop_flip")
    images = torch.full((2, size, size, 3), 255, dtype=torch.uint8)
    for pixels in (prepare.test(images), prepare.train(images, torch.tensor([1, 0]))):
        assert pixels.shape == (2, 3, 32, 32)
        torch.testing.assert_close(pixels, torch.full_like(pixels, 2.0))


def test_an_image_of_the_right_size_is_only_normalised() -> None:
    prepare = Preprocess(8, (0.5, 0.4, 0.3), (0.2, 0.2, 0.2))
    image = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3), np.uint8)
    expected = (image / 255 - [0.5, 0.4, 0.3]) / 0.2
    np.testing.assert_allclose(prepare.test(torch.from_numpy(image))[0].permute(1, 2, 0), expected[0], atol=1e-5)


def test_a_larger_image_is_cropped_in_the_centre() -> None:
    image = torch.zeros(1, 32, 32, 3, dtype=torch.uint8)
    image[:, 2:30, 2:30] = 255
    assert (Preprocess(28, (0, 0, 0), (1, 1, 1)).test(image) == 1).all()


def test_characters_are_not_mirrored() -> None:
    images = torch.zeros(64, 16, 16, 1, dtype=torch.uint8)
    images[:, :, :8] = 255  # bright on the left
    left, right = Preprocess(16, (0, 0, 0), (1, 1, 1), "crop").train(images, torch.arange(64)).chunk(2, -1)
    assert (left.mean((1, 2, 3)) >= right.mean((1, 2, 3))).all()


def test_an_unknown_augmentation_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown augmentation 'swirl'"):
        Preprocess(8, (0, 0, 0), (1, 1, 1), "swirl")


def test_float16_weights_and_a_head_are_taken(tmp_path: Path, weights: Path) -> None:
    state = {k: v.half() for k, v in TINY.build().state_dict().items()} | {"head.weight": torch.zeros(5, 32)}
    path = tmp_path / "half.safetensors"
    save_file(state, path, {"backbone": TINY.model_dump_json()})
    backbone = read_backbone("half", path)
    assert all(p.dtype == torch.float32 for p in backbone.parameters())


def test_a_timm_name_needs_no_description(tmp_path: Path) -> None:
    """Its architecture, size, mean and deviation are timm's."""
    architecture = Architecture(timm="vit_tiny_patch16_224.augreg_in21k", input=Input(size=224))
    path = tmp_path / "weights.safetensors"
    save_file(architecture.build().state_dict(), path)
    backbone = load_backbone(
        Context(
            make_setup(path).model_copy(
                update={"backbone": make_setup(path).backbone.model_copy(update={"name": architecture.timm})}  # type: ignore[union-attr]
            )
        )
    )
    assert (backbone.width, backbone.depth, backbone.preprocess.size) == (192, 12, 224)


@pytest.mark.parametrize(
    ("metadata", "complaint"),
    [
        ({}, "neither a ViT of timm nor described"),
        ({"backbone": "{}"}, "metadata of backbone 'odd' are malformed"),
        (
            {"backbone": json.dumps({"input": {"size": 16}, "width": 64, "patch": 8, "depth": 2, "heads": 2})},
            "do not fit",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, metadata: dict[str, str], complaint: str) -> None:
    path = tmp_path / "odd.safetensors"
    save_file(TINY.build().state_dict(), path, metadata)
    with pytest.raises(SuiteError, match=complaint):
        read_backbone("odd", path)


def test_a_convolutional_stem_gives_one_token_per_patch() -> None:
    architecture = Architecture(input=Input(size=32), stem="conv", patch=8, width=32, depth=1, heads=2)
    assert architecture.build().forward_features(torch.zeros(1, 3, 32, 32)).shape == (1, 17, 32)


def test_large_inputs_with_small_patches_work() -> None:
    architecture = Architecture(input=Input(size=64), patch=8, width=32, depth=1, heads=2)
    assert architecture.build().forward_features(torch.zeros(1, 3, 64, 64)).shape == (1, 65, 32)
