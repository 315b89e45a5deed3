"""DualPrompt (Wang et al., 2022, ECCV): prefixes for all tasks in the first blocks, one per task in the next."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from reference.engine import Batch
from reference.pretrained.headed import HeadedLearner
from reference.pretrained.heads import Part, WithHead
from reference.pretrained.prompts import FIRST_BLOCKS, PrefixPool, prefixes, reshaped_literally, similarity
from reference.pretrained.spaces import PROMPT, space_of
from reference.vit import Attached, run
from suite.sdk import Choice, Space, Task

_G_BLOCKS = 2


class DualPrompt(HeadedLearner):
    """G-prompts in blocks 0-1, E-prompts in blocks 2-4 (keys and values each), classifier on the class token.

    Training uses the task's own E-prompt; test chooses per sample among those of the tasks so far, by key. From the
    pool's last prompt on, tasks share: they choose by key in training too. Option `prefix = "literal"`: the missing
    permutation of the public ports.
    """

    name = "DualPrompt"
    description = "Frozen ViT, general and task-specific prefixes chosen by key"
    space: ClassVar[Space] = space_of(
        PROMPT,
        {
            "pool_size": Choice([10, 15, 20, 25, 30]),
            "pull_lambda": Choice([0.1, 0.3, 0.5]),
            "g_prompt_length": Choice([5, 10, 15, 20, 30]),
            "e_prompt_length": Choice([5, 10, 15, 20, 30]),
        },
        prefix="permuted",
    )
    network: WithHead[PrefixPool]

    def build(self) -> WithHead[PrefixPool]:
        depth = min(self.backbone.depth, FIRST_BLOCKS)
        self.g_blocks = list(range(min(_G_BLOCKS, depth - 1)))
        self.e_blocks = list(range(len(self.g_blocks), depth))
        lengths = self.option("g_prompt_length"), self.option("e_prompt_length")
        pool = PrefixPool(
            len(self.g_blocks), lengths[0], len(self.e_blocks), lengths[1], self.option("pool_size"), self.width
        )
        return WithHead(pool, self.width)

    @property
    def task(self) -> int:
        """Index of the task at hand."""
        return len(self.tasks) - 1

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        pool = self.network.body
        pool.open(self.task)
        queries = self.gather(task.images, self.backbone)
        strength: float = self.option("pull_lambda")

        def loss(batch: Batch, part: Part) -> Tensor:
            """CE(z, y) - lambda * cos(query, key of the E-prompt) (eq. 6)."""
            chosen, pull = self.training_choice(queries[batch.rows])
            features = self.prefixed(batch.images, chosen)
            return part.loss(features, batch.labels) - strength * pull

        self.fit_task(task, pool, loss, self.before_step)

    def before_step(self, trained: nn.Module) -> None:
        """Between backward and step: nothing here, gradient projection in PGP."""

    def training_choice(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """The E-prompt of each sample [B] in training, and the mean cosine to its key."""
        cosines = similarity(queries, self.network.body.key_matrix())
        if self.task < len(self.network.body):
            chosen = torch.full((len(queries),), self.task, device=queries.device)
        else:
            chosen = cosines.argmax(1)
        return chosen, cosines.gather(1, chosen[:, None]).mean()

    def choice(self, queries: Tensor) -> Tensor:
        """The E-prompt of each sample [B] at test: the nearest key of the tasks so far."""
        known = min(len(self.tasks), len(self.network.body))
        return similarity(queries, self.network.body.key_matrix()[:known]).argmax(1)

    def prefixed(self, pixels: Tensor, chosen: Tensor) -> Tensor:
        """Class-token features [B, D] under the G-prompts and the chosen E-prompts."""
        return self.backbone.pool(run(self.backbone.vit, pixels, self.attached(chosen)))

    def attached(self, chosen: Tensor) -> dict[int, Attached]:
        """What is attached to the blocks for samples that chose E-prompts `chosen` [B]."""
        general = self.network.body.g.expand(-1, -1, len(chosen), -1, -1)
        expert = self.network.body.prompts()[:, :, chosen]
        if self.option("prefix") == "literal":
            general, expert = reshaped_literally(general), reshaped_literally(expert)
        return {**prefixes(self.g_blocks, general), **prefixes(self.e_blocks, expert)}

    def features(self, pixels: Tensor) -> Tensor:
        return self.prefixed(pixels, self.choice(self.backbone(pixels)))
