"""LAE (Gao et al., 2023, ICCV): learning, accumulation, ensemble of two sets of parameter-efficient modules."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from reference.engine import Batch
from reference.pretrained.adapters import Adapter, LowRank
from reference.pretrained.headed import HeadedLearner
from reference.pretrained.heads import WithHead
from reference.pretrained.prompts import FIRST_BLOCKS, prefixes
from reference.pretrained.sources import Watched
from reference.pretrained.spaces import PROMPT, space_of
from reference.vit import Attached, Backbone, run
from suite.sdk import Choice, Space, Task

_ADAPTER, _RANK, _PREFIX = 5, 5, 10  # sizes of the three kinds of modules


class Modules(nn.Module):
    """Adapters parallel to the attention, low-rank updates of keys and values, or prefixes, in blocks 0-4.

    Prefixes are plain: the original also compensates their share of the attention.
    """

    def __init__(self, backbone: Backbone, kind: str) -> None:
        super().__init__()
        self._kind, width = kind, backbone.width
        blocks = range(min(backbone.depth, FIRST_BLOCKS))
        self.parts = nn.ModuleList()
        if kind == "adapter":
            self.parts.extend(Adapter(width, _ADAPTER, scale=1.0, drop=0.0, gelu=True) for _ in blocks)
        elif kind == "lora":
            self.parts.extend(nn.ModuleList([LowRank(width, _RANK), LowRank(width, _RANK)]) for _ in blocks)
        else:
            self.prefix = nn.Parameter(torch.empty(len(blocks), 2, 1, _PREFIX, width).normal_(std=0.02))

    def attached(self) -> Mapping[int, Attached]:
        """What to hand to `run`."""
        if self._kind == "adapter":
            return {index: Attached(attention=part) for index, part in enumerate(self.parts)}
        if self._kind == "lora":
            pairs = [list(part.children()) for part in self.parts]
            return {index: Attached(keys=keys, values=values) for index, (keys, values) in enumerate(pairs)}
        return prefixes(list(range(len(self.prefix))), self.prefix)


class OnlineOffline(nn.Module):
    """Modules that train, and their running mean."""

    def __init__(self, online: Modules) -> None:
        super().__init__()
        self.online, self.offline = online, copy.deepcopy(online).requires_grad_(False)

    @torch.no_grad()
    def accumulate(self, decay: float) -> None:
        """offline <- decay * offline + (1 - decay) * online."""
        for slow, fast in zip(self.offline.parameters(), self.online.parameters(), strict=True):
            slow.mul_(decay).add_(fast, alpha=1 - decay)


class LAE(HeadedLearner):
    """The online modules train; the offline ones, begun with the second task, follow; scores are the larger softmax."""

    name = "LAE"
    description = "Online and offline parameter-efficient modules, ensemble of both"
    space: ClassVar[Space] = space_of(
        PROMPT,
        {
            "modules": Choice(["adapter", "lora", "prefix"]),
            "ema_decay": Choice([0.99, 0.999, 0.9999]),
            "frozen_share": Choice([0.4, 0.6, 0.8]),
        },
    )
    network: WithHead[OnlineOffline]

    def build(self) -> WithHead[OnlineOffline]:
        return WithHead(OnlineOffline(Modules(self.backbone, self.option("modules"))), self.width)

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        pair, part = self.network.body, self.network.head.part(self.current)
        later, recipe = len(self.tasks) > 1, self.recipe()
        if len(self.tasks) == 2:
            pair.offline.load_state_dict(pair.online.state_dict())
        frozen_epochs = int(self.option("frozen_share") * recipe.schedule.epochs) if later else 0
        decay: float = self.option("ema_decay")

        def before_epoch(epoch: int) -> None:
            """In later tasks the head learns first, alone."""
            pair.online.requires_grad_(epoch >= frozen_epochs)

        def after_step() -> None:
            if later:
                pair.accumulate(decay)

        def loss(batch: Batch) -> Tensor:
            return part.loss(self.through(pair.online, batch.images), batch.labels)

        trained = nn.ModuleList([pair.online, part])
        self.fit(trained, Watched(self.pool(task), before_epoch, after_step), loss, recipe)
        pair.online.requires_grad_(True)
        self.network.head.put(part)

    def through(self, modules: Modules, pixels: Tensor) -> Tensor:
        """Features [B, D] of the ViT with `modules`."""
        return self.backbone.pool(run(self.backbone.vit, pixels, modules.attached()))

    def features(self, pixels: Tensor) -> Tensor:
        return self.through(self.network.body.online, pixels)

    def scores(self, pixels: Tensor) -> Tensor:
        """Elementwise maximum of the two softmax outputs (eq. 6); of the one before there is an offline set."""
        online: Tensor = self.network.head(self.features(pixels)).softmax(1)
        if len(self.tasks) < 2:
            return online
        offline = self.network.head(self.through(self.network.body.offline, pixels)).softmax(1)
        return torch.maximum(online, offline)
