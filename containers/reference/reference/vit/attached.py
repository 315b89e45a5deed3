"""A forward through timm's ViT with prompts, prefixes, adapters or low-rank updates attached to its blocks.

The ViT itself is not changed and not copied: where nothing is attached, its own `Block` runs; where something is, the
block's own submodules run in their usual order, with the attached part between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor
from torch.nn import functional

Prefix: TypeAlias = tuple[Tensor, Tensor]
"""Keys and values [B or 1, L, D] that all tokens of a sample attend to (prefix tuning)."""
Delta: TypeAlias = Callable[[Tensor], Tensor]
"""From tokens [B, N, D] to what is added to a branch of the block, of the same shape."""


@dataclass(frozen=True)
class Attached:
    """What is attached to one block."""

    prefix: Prefix | None = None
    mlp: Delta | None = None
    """Parallel to the MLP, from the residual stream before its norm (AdaptFormer)."""
    attention: Delta | None = None
    """Parallel to the attention, from the same normed tokens as it (LAE's adapter)."""
    keys: Delta | None = None
    """Added to the keys' projection (LoRA)."""
    values: Delta | None = None
    """Added to the values' projection (LoRA)."""

    @property
    def reaches_attention(self) -> bool:
        """Whether the attention itself differs from the block's own."""
        return self.prefix is not None or self.keys is not None or self.values is not None


def run(
    vit: VisionTransformer,
    pixels: Tensor,
    attached: Mapping[int, Attached] | None = None,
    prompts: Tensor | None = None,
) -> Tensor:
    """Normed output tokens [B, N, D] of `pixels` [B, 3, S, S].

    `attached` says by block index what is attached. `prompts` [B or 1, L, D] stand right behind the class token, before
    the first block, and carry no position of their own: L output tokens more.
    """
    x = vit.patch_drop(vit._pos_embed(vit.patch_embed(pixels)))  # noqa: SLF001  (timm has no public name for it)
    if prompts is not None:
        behind = vit.num_prefix_tokens
        x = torch.cat([x[:, :behind], prompts.expand(len(x), -1, -1), x[:, behind:]], dim=1)
    x = vit.norm_pre(x)
    for index, block in enumerate(vit.blocks):
        extra = attached.get(index) if attached else None
        x = block(x) if extra is None else _run_block(block, x, extra)
    normed: Tensor = vit.norm(x)
    return normed


def _run_block(block: Any, x: Tensor, extra: Attached) -> Tensor:
    """timm's `Block`, submodule by submodule."""
    normed = block.norm1(x)
    branch = _attend(block.attn, normed, extra) if extra.reaches_attention else block.attn(normed)
    if extra.attention is not None:
        branch = branch + extra.attention(normed)
    x = x + block.drop_path1(block.ls1(branch))
    out: Tensor = x + block.drop_path2(block.ls2(block.mlp(block.norm2(x))))
    return out if extra.mlp is None else out + extra.mlp(x)


def _attend(attention: Any, x: Tensor, extra: Attached) -> Tensor:
    """timm's `Attention`, but keys and values have a prefix or a low-rank update."""
    query, key, value = attention.qkv(x).chunk(3, dim=-1)
    if extra.keys is not None:
        key = key + extra.keys(x)
    if extra.values is not None:
        value = value + extra.values(x)
    q, k, v = (_heads(part, attention.num_heads) for part in (query, key, value))
    q, k = attention.q_norm(q), attention.k_norm(k)
    if extra.prefix is not None:
        pk, pv = (_heads(part.expand(len(x), -1, -1), attention.num_heads) for part in extra.prefix)
        k, v = torch.cat([pk, k], dim=2), torch.cat([pv, v], dim=2)
    y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    y = attention.norm(y)
    if attention.gate is not None:
        y = y * attention.gate(x).sigmoid()
    out: Tensor = attention.proj_drop(attention.proj(y))
    return out


def _heads(tokens: Tensor, heads: int) -> Tensor:
    """[B, N, D] -> [B, heads, N, D / heads]."""
    batch, count, width = tokens.shape
    return tokens.reshape(batch, count, heads, width // heads).transpose(1, 2)
