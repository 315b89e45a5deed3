"""Prompts and where they go: selection by keys, prefixes of keys and values, their choice per sample."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.vit import Attached

FIRST_BLOCKS = 5
"""Prefix methods attach to blocks 0-4 of a ViT-B; a shallower ViT has its own depth as bound."""


def uniform(*shape: int) -> nn.Parameter:
    """A parameter drawn from U(-1, 1), as all prompts and keys of L2P and DualPrompt are."""
    return nn.Parameter(torch.empty(*shape).uniform_(-1, 1))


def similarity(queries: Tensor, keys: Tensor) -> Tensor:
    """Cosines [B, P] of queries [B, D] to keys [P, D]."""
    return functional.normalize(queries, dim=1) @ functional.normalize(keys, dim=1).T


def prefixes(blocks: list[int], pairs: Tensor) -> dict[int, Attached]:
    """Keys and values for each of `blocks` from prompts [blocks, 2, B or 1, L, D]: index 0 the keys, 1 the values."""
    return {block: Attached(prefix=(pairs[i, 0], pairs[i, 1])) for i, block in enumerate(blocks)}


def reshaped_literally(pairs: Tensor) -> Tensor:
    """What all PyTorch ports of DualPrompt do by leaving out a permutation of [blocks, 2, B, L, D].

    The memory is read as [blocks, B, 2, L, D], so that the first half of a batch gets keys as keys and values, and with
    per-sample prompts samples leak into one another. Offered to compare with published numbers.
    """
    blocks, two, batch, length, width = pairs.shape
    return pairs.reshape(blocks, batch, two, length, width).transpose(1, 2)


class PromptPool(nn.Module):
    """L2P's pool: prompts [P, L, D] with keys [P, D]."""

    def __init__(self, size: int, length: int, width: int) -> None:
        super().__init__()
        self.prompts = uniform(size, length, width)
        self.keys = uniform(size, width)

    def choose(self, queries: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The `count` prompts nearest to each query: tokens [B, count * L, D], and their mean summed cosine (scalar).

        Each sample chooses for itself; there is no vote of the batch.
        """
        cosines, chosen = similarity(queries, self.keys).topk(min(count, len(self.keys)), dim=1)
        return self.prompts[chosen].flatten(1, 2), cosines.sum(1).mean()


class PrefixPool(nn.Module):
    """DualPrompt's pools: G-prompts shared by all, and P E-prompts [blocks, 2, L, D] with keys [D].

    Each E-prompt is a parameter of its own, so that what a task does not train does not move, not even by weight decay.
    """

    def __init__(self, g_blocks: int, g_length: int, e_blocks: int, e_length: int, size: int, width: int) -> None:
        super().__init__()
        self.g = uniform(g_blocks, 2, 1, g_length, width)
        self.e = nn.ParameterList(uniform(e_blocks, 2, e_length, width) for _ in range(size))
        self.keys = nn.ParameterList(uniform(width) for _ in range(size))

    def __len__(self) -> int:
        return len(self.keys)

    def prompts(self) -> Tensor:
        """All E-prompts [blocks, 2, P, L, D]."""
        return torch.stack(list(self.e), 2)

    def key_matrix(self) -> Tensor:
        """All keys [P, D]."""
        return torch.stack(list(self.keys))

    @torch.no_grad()
    def open(self, task: int) -> None:
        """Let only the E-prompt and key of `task` train, from where those of the task before ended.

        Past the pool's end there are none of its own, and all train.
        """
        for index, parts in enumerate(zip(self.e, self.keys, strict=True)):
            for part in parts:
                part.requires_grad_(index == task or task >= len(self))
        if 0 < task < len(self):
            self.e[task].copy_(self.e[task - 1])
            self.keys[task].copy_(self.keys[task - 1])
