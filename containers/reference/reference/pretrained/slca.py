"""SLCA (Zhang et al., 2023, ICCV): slow learning of the ViT, then alignment of the classifier on replayed features."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from reference.engine import Batch
from reference.pretrained.heads import Head, Part, WithHead
from reference.pretrained.sources import Replayed
from reference.pretrained.spaces import WHOLE_NETWORK, space_of
from reference.pretrained.statistics import Gaussians
from reference.pretrained.whole import WholeNetworkLearner, thawed
from reference.schedules import Recipe, Schedule
from reference.vit import Backbone
from suite.sdk import Choice, Space, Task

_SAMPLES = 256  # features drawn per class and epoch, and the size of a batch
_TEMPERATURE = 0.1
_ALIGNMENT_LR = 0.01


class SlcaNetwork(WithHead[Backbone]):
    """ViT, the head as it was trained, the head as it was aligned, and the classes' Gaussians."""

    def __init__(self, body: Backbone, width: int) -> None:
        super().__init__(body, width)
        self.aligned = Head(width)
        self.gaussians = Gaussians(width)


class SLCA(WholeNetworkLearner):
    """Each task trains the ViT slowly and its own rows of the head; the rows of all classes are then aligned.

    Alignment always starts from the head before any alignment, so both heads are kept.
    """

    name = "SLCA"
    description = "Slow fine-tuning of the whole ViT, classifier aligned on Gaussian features"
    space: ClassVar[Space] = space_of(WHOLE_NETWORK, {"alignment_epochs": Choice([3, 5, 10])})
    network: SlcaNetwork

    def build(self) -> SlcaNetwork:
        return SlcaNetwork(thawed(self.backbone), self.width)

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        network, part = self.network, self.network.head.part(self.current)

        def loss(batch: Batch) -> Tensor:
            return part.loss(network.body(batch.images), batch.labels)

        trained = torch.nn.ModuleList([network.body, part])
        self.fit(trained, self.pool(task), loss, self.recipe(), groups=self.groups(network.body, part))
        network.head.put(part)
        self.stage("post")
        features, labels = self.gather(task.images, self.features), self.labels(task)
        for label in self.tasks[-1]:
            network.gaussians.fit(label, features[labels == label])
        whole = network.head.part(torch.arange(self.seen, device=self.device))
        if len(self.tasks) > 1:
            self.align(whole)
        network.aligned.put(whole)

    def align(self, whole: Part) -> None:
        """Train all rows on features drawn from N(mean (0.9 + 0.1 (t_c + 1) / (t + 1)), covariance) (section 3.3)."""
        blocks, home = self.blocks_by_task()
        count = len(self.tasks)

        def draw(label: int) -> Tensor:
            return self.network.gaussians.sample(label, _SAMPLES, 0.9 + 0.1 * (home[label] + 1) / count)

        def loss(batch: Batch) -> Tensor:
            """CE of the logits over the mean of the per-task norms, divided by the temperature (eq. 5)."""
            logits = whole(batch.images)
            norms = torch.stack([logits[:, block].norm(dim=1) for block in blocks], 1) + 1e-7
            return functional.cross_entropy(logits / norms.mean(1, keepdim=True) / _TEMPERATURE, batch.labels)

        schedule = Schedule("cosine", self.option("alignment_epochs"), _ALIGNMENT_LR)
        source = Replayed(list(range(self.seen)), draw, _SAMPLES)
        self.fit(whole, source, loss, Recipe(schedule, _SAMPLES, 0.0005), note="alignment")

    def blocks_by_task(self) -> tuple[list[Tensor], dict[int, int]]:
        """The classes that each task brought first, and the task of each class; tasks may be of any size."""
        home: dict[int, int] = {}
        for index, classes in enumerate(self.tasks):
            for label in classes:
                home.setdefault(label, index)
        blocks = [[c for c in range(self.seen) if home[c] == t] for t in range(len(self.tasks))]
        return [torch.tensor(block, device=self.device) for block in blocks if block], home

    def scores(self, pixels: Tensor) -> Tensor:
        scores: Tensor = self.network.aligned(self.features(pixels))
        return scores
