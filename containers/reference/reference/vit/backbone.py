"""Pretrained ViTs from a safetensors file: which architecture, which input, frozen features.

A file says itself what it holds. Its metadata have the entry `backbone`, JSON with the fields of `Architecture`; with
neither entry nor a timm name it is refused. Nothing is ever downloaded here.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import timm
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import safe_open
from timm.layers.hybrid_embed import HybridEmbed
from timm.layers.norm_act import GroupNormAct
from timm.layers.patch_embed import PatchEmbed
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_hybrid import ConvStem
from torch import Tensor, nn

from reference.vit.preprocess import Preprocess
from suite.protocol.errors import SuiteError
from suite.sdk import Context

_REMEDY = "See `suite weights list`; `suite weights add` and `suite weights pretrain` write files that can be loaded."
_MAX_METADATA = 1 << 16
Positive = Annotated[int, Field(ge=1, le=1 << 16)]


class Input(BaseModel):
    """What the network was trained on: size in pixels, mean and standard deviation of pixels in [0, 1]."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    size: Positive
    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    std: tuple[float, float, float] = (0.5, 0.5, 0.5)


class Architecture(BaseModel):
    """A ViT: either the name of one of timm's, or the numbers that make one."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    input: Input
    timm: Annotated[str, Field(pattern=r"^vit_[a-z0-9_.]+$", max_length=100)] | None = None
    patch: Positive = 16
    width: Positive = 768
    depth: Annotated[int, Field(ge=1, le=100)] = 12
    heads: Positive = 12
    mlp_ratio: float = 4.0
    stem: Literal["patch", "conv"] = "patch"
    """How patches become tokens: timm's linear embedding, or strided convolutions down to one pixel per patch."""

    def build(self) -> VisionTransformer:
        """The network without its classification head, with random weights."""
        if self.timm is not None:
            return cast(
                "VisionTransformer",
                timm.create_model(self.timm, pretrained=False, num_classes=0, img_size=self.input.size),
            )
        is_patched = self.stem == "patch"
        return VisionTransformer(
            img_size=self.input.size,
            patch_size=self.patch if is_patched else 1,  # of the stem's output
            embed_layer=PatchEmbed if is_patched else self._conv_stem(),
            embed_dim=self.width,
            depth=self.depth,
            num_heads=self.heads,
            mlp_ratio=self.mlp_ratio,
            num_classes=0,
        )

    def _conv_stem(self) -> Any:
        """3 x 3 convolutions of stride 2, log2(patch) of them, widths doubling up to the token's."""
        count = self.patch.bit_length() - 1
        make: Any = ConvStem  # timm annotates classes where it takes any maker of modules
        stem = make(
            depth=count,
            channels=tuple(self.width >> (count - 1 - i) for i in range(count)),
            kernel_size=3,
            stride=(2,) * count,
            padding=(1,) * count,
            norm_layer=partial(GroupNormAct, num_groups=8),
            act_layer="gelu",
        )
        return partial(HybridEmbed, backbone=stem)


class Backbone(nn.Module):
    """A ViT and its input. Frozen and in evaluation mode unless a method thaws it (`requires_grad_`, `train`)."""

    def __init__(self, vit: VisionTransformer, expected: Input) -> None:
        super().__init__()
        self.vit = vit.eval().requires_grad_(False)
        self.preprocess = Preprocess(expected.size, expected.mean, expected.std)

    @property
    def width(self) -> int:
        """D, the length of a feature vector."""
        return int(self.vit.embed_dim)

    @property
    def depth(self) -> int:
        """Number of blocks."""
        return len(self.vit.blocks)

    def forward(self, pixels: Tensor) -> Tensor:
        """Features [B, D] of preprocessed images: the class token after the last norm (or timm's pooling)."""
        return self.pool(self.vit.forward_features(pixels))

    def pool(self, tokens: Tensor) -> Tensor:
        """Features [B, D] of output tokens [B, N, D]."""
        pooled: Tensor = self.vit.fc_norm(self.vit.pool(tokens))
        return pooled


def read_backbone(name: str, path: Path) -> Backbone:
    """The network in a safetensors file, float32, on the CPU. Raises SuiteError when it is none or does not fit."""
    try:
        with safe_open(path, framework="pt") as file:
            architecture = _architecture(name, file.metadata() or {})
            weights = {key: file.get_tensor(key).float() for key in file.keys()}  # noqa: SIM118  (it is no dict)
    except Exception as error:
        if isinstance(error, SuiteError):
            raise
        raise SuiteError(f"The weights of backbone {name!r} cannot be read: {error}.", _REMEDY) from error
    vit = architecture.build()
    body = {key: value for key, value in weights.items() if not key.startswith(("head.", "head_dist."))}
    try:
        vit.load_state_dict(body)
    except RuntimeError as error:
        what = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise SuiteError(f"The weights of backbone {name!r} do not fit its architecture: {what}", _REMEDY) from error
    return Backbone(vit, architecture.input)


def _architecture(name: str, metadata: dict[str, str]) -> Architecture:
    if "backbone" in metadata and len(metadata["backbone"]) <= _MAX_METADATA:
        try:
            return Architecture.model_validate_json(metadata["backbone"])
        except ValidationError as error:
            raise SuiteError(
                f"The metadata of backbone {name!r} are malformed: {error.errors()[0]['msg']}.", _REMEDY
            ) from error
    if not timm.is_model(name) or not name.startswith("vit_"):
        raise SuiteError(f"Backbone {name!r} is neither a ViT of timm nor described by its file.", _REMEDY)
    config: Any = timm.get_pretrained_cfg(name)
    expected = Input(size=config.input_size[-1], mean=config.mean, std=config.std)
    return Architecture(timm=name, input=expected)


def load_backbone(context: Context) -> Backbone:
    """The backbone that `setup` announces, frozen, on the trial's device.

    Raises SuiteError without one: a learner for pretrained backbones has nothing to say about random features.
    """
    announced = context.setup.backbone
    if announced is None:
        raise SuiteError(
            "This learner needs a pretrained backbone, and the track gives none.",
            "Choose a track that names a backbone, or give one (`vit_glyph` is shipped).",
        )
    return read_backbone(announced.name, Path(announced.path)).to(torch.device(context.setup.device))
