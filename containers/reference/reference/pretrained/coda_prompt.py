"""CODA-Prompt (Smith et al., 2023, CVPR): prompts as attention-weighted sums of components."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.engine import Batch
from reference.pretrained.headed import HeadedLearner
from reference.pretrained.heads import Part, WithHead
from reference.pretrained.prompts import FIRST_BLOCKS, prefixes
from reference.pretrained.spaces import PROMPT, space_of
from reference.vit import run
from suite.sdk import Choice, Space, Task

_ASSUMED_TASKS = 10


class Components(nn.Module):
    """The components of one task: prompts p [blocks, M, L * D], keys k and attention vectors a [blocks, M, D]."""

    def __init__(self, blocks: int, count: int, length: int, width: int) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.zeros(blocks, count, length * width))
        self.k = nn.Parameter(torch.zeros(blocks, count, width))
        self.a = nn.Parameter(torch.zeros(blocks, count, width))


class ComponentPool(nn.Module):
    """Components of all tasks so far; those of earlier tasks take part but do not train.

    The pool grows by a task's share at its start, so no parameter that an optimiser holds is ever replaced.
    """

    def __init__(self, blocks: int, length: int, width: int) -> None:
        super().__init__()
        self._size = (blocks, length, width)
        self.groups = nn.ModuleList()

    def open(self, count: int) -> None:
        """Add `count` components, as zeros, and freeze the earlier ones."""
        self.groups.requires_grad_(False)
        blocks, length, width = self._size
        self.groups.append(Components(blocks, count, length, width))

    def all(self, name: str) -> Tensor:
        """p, k or a of all tasks [blocks, M, ...]."""
        return torch.cat([group.get_parameter(name) for group in self.groups], 1)

    @torch.no_grad()
    def draw(self) -> None:
        """Draw the newest components orthonormal to the earlier ones and to each other (Gram-Schmidt, by QR)."""
        newest = self.groups[-1]
        for name in ("p", "k", "a"):
            parameter = newest.get_parameter(name)
            count = parameter.shape[1]
            for block, rows in enumerate(self.all(name)):
                parameter[block] = orthonormal(rows[:-count], torch.rand(count, rows.shape[1]).to(rows))

    def prompts(self, queries: Tensor) -> Tensor:
        """Prompts [blocks, 2, B, L / 2, D]: sum over m of cos(q * a_m, k_m) p_m (eq. 4 and 5); keys, then values."""
        blocks, length, width = self._size
        a, k = self.all("a"), functional.normalize(self.all("k"), dim=-1)
        q = queries.expand(blocks, -1, -1)
        norms = (q.square() @ a.square().mT).clamp(min=1e-24).sqrt()  # |q * a_m| without [B, M, D] in memory
        weights = (q @ (a * k).mT) / norms
        flat: Tensor = weights @ self.all("p")
        return flat.reshape(blocks, len(queries), 2, length // 2, width).permute(0, 2, 1, 3, 4)

    def penalty(self) -> Tensor:
        """Sum over blocks of the mean squared difference of p p', k k' and a a' to the identity (eq. 6)."""
        total = torch.zeros((), device=self.groups[0].get_parameter("p").device)
        for name in ("p", "k", "a"):
            rows = self.all(name)
            gram = rows @ rows.mT
            total = total + (gram - torch.eye(gram.shape[-1], device=rows.device)).square().mean((1, 2)).sum()
        return total


def orthonormal(earlier: Tensor, fresh: Tensor) -> Tensor:
    """`fresh` [m, n] made orthonormal to the span of `earlier` and to itself; float64 inside.

    In n dimensions no more than n rows can be: what is beyond becomes unit vectors of random direction.
    """
    base = torch.linalg.qr(earlier.double().T)[0] if len(earlier) else earlier.double().T
    room = max(0, fresh.shape[1] - base.shape[1])
    inside, beyond = fresh.double()[:room], fresh.double()[room:]
    for _ in range(2):  # twice is enough for orthogonality to rounding
        inside = inside - inside @ base @ base.T
    parts = [torch.linalg.qr(inside.T)[0].T] if len(inside) else []
    return torch.cat([*parts, functional.normalize(beyond - 0.5, dim=1)]).to(fresh)


class CodaPrompt(HeadedLearner):
    """Prefixes in blocks 0-4, each a sum of components weighted by the query; one share of components per task."""

    name = "CODA-Prompt"
    description = "Frozen ViT, prefixes composed of components by attention"
    space: ClassVar[Space] = space_of(
        PROMPT,
        {
            "pool_size": Choice([30, 50, 100, 200, 300]),
            "prompt_length": Choice([4, 8, 16, 24, 32]),
            "ortho_mu": Choice([0.2, 0.1, 0.01, 0.001, 0]),
        },
    )
    network: WithHead[ComponentPool]

    def build(self) -> WithHead[ComponentPool]:
        self.blocks = list(range(min(self.backbone.depth, FIRST_BLOCKS)))
        return WithHead(ComponentPool(len(self.blocks), self.option("prompt_length"), self.width), self.width)

    def open_task(self) -> None:
        """The task's share of the pool: pool size / number of tasks; ten tasks are assumed where none are announced."""
        tasks = self.context.setup.announcement.tasks or _ASSUMED_TASKS
        self.network.body.open(max(1, self.option("pool_size") // tasks))

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        self.network.body.draw()
        queries, mu = self.gather(task.images, self.backbone), self.option("ortho_mu")

        def loss(batch: Batch, part: Part) -> Tensor:
            """CE(z, y) + mu * orthogonality (eq. 7)."""
            loss = part.loss(self.prompted(batch.images, queries[batch.rows]), batch.labels)
            return loss + mu * self.network.body.penalty() if mu else loss

        self.fit_task(task, self.network.body, loss)

    def prompted(self, pixels: Tensor, queries: Tensor) -> Tensor:
        """Class-token features [B, D] under the prompts that the queries compose."""
        attached = prefixes(self.blocks, self.network.body.prompts(queries))
        return self.backbone.pool(run(self.backbone.vit, pixels, attached))

    def features(self, pixels: Tensor) -> Tensor:
        return self.prompted(pixels, self.backbone(pixels))
