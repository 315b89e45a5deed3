"""The small ViT that is pretrained here: its numbers, and timm's class made from them."""

from __future__ import annotations

from functools import partial
from typing import Any

ARCHITECTURE: dict[str, Any] = {
    "input": {"size": 32, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]},
    "stem": "conv",
    "patch": 8,
    "width": 128,
    "depth": 6,
    "heads": 4,
}
"""`vit_glyph`, as it is written into the metadata of its file; 1.3 M parameters, 17 tokens.

The stem of strided convolutions stands for the linear patch embedding: without it a ViT of this size does not begin to
learn within the passes that a CPU has time for.
"""


def build(architecture: dict[str, Any], classes: int) -> Any:
    """timm's VisionTransformer of these numbers, with random weights and a linear head."""
    from timm.layers.hybrid_embed import HybridEmbed
    from timm.layers.norm_act import GroupNormAct
    from timm.models.vision_transformer import VisionTransformer
    from timm.models.vision_transformer_hybrid import ConvStem

    width, count = architecture["width"], architecture["patch"].bit_length() - 1
    make: Any = ConvStem  # timm annotates classes where it takes any maker of modules
    stem = make(
        depth=count,
        channels=tuple(width >> (count - 1 - i) for i in range(count)),
        kernel_size=3,
        stride=(2,) * count,
        padding=(1,) * count,
        norm_layer=partial(GroupNormAct, num_groups=8),
        act_layer="gelu",
    )
    return VisionTransformer(
        img_size=architecture["input"]["size"],
        patch_size=1,  # of the stem's output
        embed_layer=partial(HybridEmbed, backbone=stem),
        embed_dim=width,
        depth=architecture["depth"],
        num_heads=architecture["heads"],
        num_classes=classes,
        weight_init="jax",
    )
