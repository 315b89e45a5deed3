"""L2P: learning to prompt (Wang et al., 2022, CVPR): a pool of prompts from which every image chooses by key."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from reference.engine import Batch
from reference.pretrained.headed import HeadedLearner
from reference.pretrained.heads import Part, WithHead
from reference.pretrained.prompts import PromptPool
from reference.pretrained.spaces import PROMPT, space_of
from reference.vit import run
from suite.sdk import Choice, Space, Task


class L2P(HeadedLearner):
    """Prompt tokens in front of the first block; the classifier reads the mean of their outputs.

    Queries are features of images without augmentation, hence computed once a task. The choice is per sample, in
    training too, never the batch's majority.
    """

    name = "L2P"
    description = "Frozen ViT, pool of prompts chosen by key, classifier on the prompts' outputs"
    space: ClassVar[Space] = space_of(
        PROMPT,
        {
            "pool_size": Choice([10, 15, 20, 25, 30]),
            "prompt_length": Choice([2, 4, 6, 8, 10]),
            "top_k": Choice([2, 4, 6, 8, 10]),
            "pull_lambda": Choice([0.1, 0.3, 0.5]),
        },
    )
    network: WithHead[PromptPool]

    def build(self) -> WithHead[PromptPool]:
        pool = PromptPool(self.option("pool_size"), self.option("prompt_length"), self.width)
        return WithHead(pool, self.width)

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        queries = self.gather(task.images, self.backbone)
        strength: float = self.option("pull_lambda")

        def loss(batch: Batch, part: Part) -> Tensor:
            """CE(z, y) - lambda * mean of the summed cosines to the chosen keys (eq. 5)."""
            features, pull = self.prompted(batch.images, queries[batch.rows])
            return part.loss(features, batch.labels) - strength * pull

        self.fit_task(task, self.network.body, loss)

    def prompted(self, pixels: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Mean output of the chosen prompts [B, D], and the mean summed cosine of their keys."""
        tokens, pull = self.network.body.choose(queries, self.option("top_k"))
        vit = self.backbone.vit
        if vit.pos_embed is not None and not vit.no_embed_class:
            tokens = tokens + vit.pos_embed[:, :1]  # the prompts' slots share the class token's position
        out = run(vit, pixels, prompts=tokens)
        behind = vit.num_prefix_tokens
        return out[:, behind : behind + tokens.shape[1]].mean(1), pull

    def features(self, pixels: Tensor) -> Tensor:
        return self.prompted(pixels, self.backbone(pixels))[0]
