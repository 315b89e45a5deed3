"""RanPAC (McDonnell et al., 2023, NeurIPS): random projections and ridge regression on pretrained features."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from reference.pretrained.adapted import AdaptedLearner
from reference.pretrained.adapters import MlpAdapters, PromptTokens
from reference.pretrained.ridge import RandomFeatures, RidgeClassifier
from reference.pretrained.spaces import ADAPTER, REPRESENTATION, space_of
from reference.vit import run
from suite.protocol.messages import LearnResult
from suite.sdk import Choice, Space, Task


class RanPAC(AdaptedLearner):
    """The ViT is tuned in the first task; then h = ReLU(f W), and class scores are those of ridge regression on h.

    `petl` is what tunes it: adapters of width `ffn_num`, or `prompt_tokens` prompt tokens. (Table 5 of GTEP lists both
    sizes, and the original has both techniques, one at a time.)
    """

    name = "RanPAC"
    description = "First-task tuning, random projection, ridge regression"
    space: ClassVar[Space] = space_of(
        REPRESENTATION,
        {
            "petl": Choice(["adapter", "prompt"]),
            "ffn_num": ADAPTER["ffn_num"].model_copy(update={"when": {"petl": ["adapter"]}}),
            "prompt_tokens": Choice([3, 5, 10, 20, 30, 50], when={"petl": ["prompt"]}),
            "projection_dim": Choice([5000, 10000, 15000, 20000]),
        },
    )
    carried: ClassVar[tuple[str, ...]] = ("ridge",)
    network: MlpAdapters | PromptTokens

    def build(self) -> MlpAdapters | PromptTokens:
        seed = self.context.setup.learner_seed % 2**63
        expand = RandomFeatures(self.width, self.option("projection_dim"), seed, self.device)
        self.ridge = RidgeClassifier(expand, self.device)
        if self.option("petl") == "prompt":
            return PromptTokens(self.backbone, self.option("prompt_tokens"))
        return MlpAdapters(self.backbone, self.option("ffn_num"))

    def grow(self, seen: int) -> None:
        super().grow(seen)
        self.ridge.grow(seen)

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        if len(self.tasks) == 1:
            self.tune(task, self.network, self.features)
            self.stage("post")
        self.ridge.learn(self.gather(task.images, self.features), self.labels(task))

    def features(self, pixels: Tensor) -> Tensor:
        """Features [B, D] of the tuned ViT."""
        vit, tuned = self.backbone.vit, self.network
        if isinstance(tuned, PromptTokens):
            return self.backbone.pool(run(vit, pixels, prompts=tuned.tokens))
        return self.backbone.pool(run(vit, pixels, tuned.attached()))

    def scores(self, pixels: Tensor) -> Tensor:
        return self.ridge.scores(self.features(pixels))

    def report(self) -> LearnResult:
        result = super().report()
        stored = result.stored_parameters + self.ridge.numbers()
        return result.model_copy(update={"stored_parameters": stored, "metrics": {"ridge": self.ridge.ridge}})
