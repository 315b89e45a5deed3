"""HiDe-Prompt (Wang et al., 2023, NeurIPS): task identity, within-task prediction and task-adaptive prediction.

Per task: (i) TII: a small network on frozen features learns which class, hence which task, an image is of; (ii) WTP:
the task's prefixes and rows of the head are trained; (iii) TAP: the head is aligned on features replayed from every
class's mixture of Gaussians. The original runs (i) over the whole stream before (ii); here each task runs all three, as
its data will not be seen again.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.engine import Batch
from reference.pretrained.base import PretrainedLearner
from reference.pretrained.heads import Head, Part, WithHead
from reference.pretrained.prompts import FIRST_BLOCKS, prefixes, uniform
from reference.pretrained.sources import Replayed, Rows
from reference.pretrained.spaces import PROMPT, space_of
from reference.pretrained.statistics import Mixtures
from reference.schedules import Recipe, Schedule
from reference.vit import run
from suite.sdk import Choice, Space, Task

_CENTROIDS = 10
_BATCH = 24
_TII_EPOCHS = 20
_ALIGNMENT_EPOCHS = 30
_TII_SAMPLES = 24  # per class and epoch; the original draws as many per centroid, and then uses about a tenth of them
_TAP_SAMPLES = 120
_MERGE = 0.01  # share of the earlier prompts in a task's own
_TEMPERATURE = 0.8
_HEAD_RATE = 0.1  # the head's learning rate relative to the prompts'


class Identifier(nn.Module):
    """D -> 2 D -> D -> classes, on frozen features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.head = Head(width)


class HideNetwork(WithHead[nn.ParameterList]):
    """Prompts [blocks, 2, L, D] of each task and their head, the identifier, and the classes' mixtures."""

    def __init__(self, width: int) -> None:
        super().__init__(nn.ParameterList(), width)
        self.identifier = Identifier(width)
        self.plain = Mixtures(width, _CENTROIDS)
        self.instructed = Mixtures(width, _CENTROIDS)


class HiDePrompt(PretrainedLearner):
    """The identifier chooses the prompts per sample; the aligned head then scores all classes."""

    name = "HiDe-Prompt"
    description = "Prefixes per task, chosen by task identity; classifier aligned on replayed features"
    space: ClassVar[Space] = space_of(
        PROMPT,
        {
            "prompt_length": Choice([5, 10, 20]),
            "contrast": Choice([0.05, 0.1, 0.2]),
            "tii_lr": Choice([0.00005, 0.0005, 0.005]),
            "alignment_lr": Choice([0.005, 0.01, 0.05]),
        },
    )
    network: HideNetwork

    def build(self) -> HideNetwork:
        self.blocks = list(range(min(self.backbone.depth, FIRST_BLOCKS)))
        return HideNetwork(self.width)

    def open_task(self) -> None:
        prompts = self.network.body
        prompts.requires_grad_(False)
        prompts.append(uniform(len(self.blocks), 2, self.option("prompt_length"), self.width))

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        labels = self.labels(task)
        frozen = self.gather(task.images, self.backbone)
        self.identify(frozen, labels)
        self.predict_within(task)
        self.stage("post")
        instructed = self.gather(task.images, lambda pixels: self.prefixed(pixels, self.network.body[-1][:, :, None]))
        for label in self.tasks[-1]:
            self.network.instructed.fit(label, instructed[labels == label])
        self.align(self.network.head, self.network.instructed, _TAP_SAMPLES)

    # --- (i) ----------------------------------------------------------------------------------------------------------

    def identify(self, frozen: Tensor, labels: Tensor) -> None:
        """Train the identifier on the task's frozen features, then align its head on those of all classes."""
        identifier, part = self.network.identifier, self.network.identifier.head.part(self.current)

        def loss(batch: Batch) -> Tensor:
            return part.loss(identifier.body(batch.images), batch.labels)

        recipe = Recipe(Schedule("constant", _TII_EPOCHS, self.option("tii_lr")), _BATCH, 0.0, "adam")
        trained = nn.ModuleList([identifier.body, part])
        self.fit(trained, Rows(frozen, labels, _BATCH), loss, recipe, note="task identity")
        identifier.head.put(part)
        for label in self.tasks[-1]:
            self.network.plain.fit(label, frozen[labels == label])
        self.align(identifier.head, self.network.plain, _TII_SAMPLES, identifier.body)

    def align(self, head: Head, mixtures: Mixtures, samples: int, body: nn.Module | None = None) -> None:
        """Train all rows of `head` on features drawn from the mixtures of all classes."""
        if len(self.tasks) < 2:
            return
        whole = head.part(torch.arange(self.seen, device=self.device))

        @torch.no_grad()
        def draw(label: int) -> Tensor:
            drawn = mixtures.sample(label, samples)
            return drawn if body is None else body(drawn)

        def loss(batch: Batch) -> Tensor:
            return functional.cross_entropy(whole(batch.images), batch.labels)

        size = _BATCH * len(self.tasks)
        recipe = Recipe(Schedule("cosine", _ALIGNMENT_EPOCHS, self.option("alignment_lr")), size, 0.0005)
        self.fit(whole, Replayed(list(range(self.seen)), draw, size), loss, recipe, note="alignment")
        head.put(whole)

    # --- (ii) ---------------------------------------------------------------------------------------------------------

    def predict_within(self, task: Task) -> None:
        """Train the task's prompts and rows: CE among its classes + contrast to the classes before."""
        prompts, part = self.network.body, self.network.head.part(self.current)
        own: Tensor = prompts[-1]
        older = torch.stack(list(prompts)[:-1]).mean(0) if len(prompts) > 1 else None
        if len(prompts) > 1:
            with torch.no_grad():
                own.copy_(prompts[-2])
        centroids = self.network.instructed.centroids([c for c in range(self.seen) if c not in self.tasks[-1]])
        weight: float = self.option("contrast")

        def merged() -> Tensor:
            """(1 - m) own + m * mean of the older (prompt ensemble)."""
            return own if older is None else (1 - _MERGE) * own + _MERGE * older

        def loss(batch: Batch) -> Tensor:
            features = self.prefixed(batch.images, merged()[:, :, None])
            return part.loss(features, batch.labels) + weight * contrast(features, centroids)

        groups: list[dict[str, Any]] = [{"params": [own]}, {"params": list(part.parameters()), "scale": _HEAD_RATE}]
        trained = nn.ModuleList([nn.ParameterList([own]), part])
        self.fit(trained, self.pool(task), loss, self.recipe(), groups=groups, before_step=Clip(trained))
        with torch.no_grad():
            own.copy_(merged())
        self.network.head.put(part)

    def prefixed(self, pixels: Tensor, pairs: Tensor) -> Tensor:
        """Features [B, D] under prefixes [blocks, 2, B or 1, L, D]."""
        return self.backbone.pool(run(self.backbone.vit, pixels, prefixes(self.blocks, pairs)))

    # --- test ---------------------------------------------------------------------------------------------------------

    def identity(self, frozen: Tensor) -> Tensor:
        """The task [B] of each sample: that in which the identifier's class was seen last."""
        latest = {label: index for index, classes in enumerate(self.tasks) for label in classes}
        task_of = torch.tensor([latest[label] for label in range(self.seen)], device=self.device)
        identifier = self.network.identifier
        return task_of[identifier.head(identifier.body(frozen)).argmax(1)]

    def features(self, pixels: Tensor) -> Tensor:
        chosen = self.identity(self.backbone(pixels))
        pairs = torch.stack(list(self.network.body), 2)[:, :, chosen]
        return self.prefixed(pixels, pairs)

    def scores(self, pixels: Tensor) -> Tensor:
        scores: Tensor = self.network.head(self.features(pixels))
        return scores


class Clip:
    """Clips the gradients of a module to norm 1 between backward and step."""

    def __init__(self, module: nn.Module | Part) -> None:
        self._module = module

    def __call__(self) -> None:
        nn.utils.clip_grad_norm_(self._module.parameters(), 1.0)


def contrast(features: Tensor, centroids: Tensor) -> Tensor:
    """Cross-entropy of the similarities of [centroids; features] to one another, each its own target (eq. 8)."""
    everything = torch.cat([centroids, features])
    similarities = everything @ everything.T / _TEMPERATURE
    return functional.cross_entropy(similarities, torch.arange(len(everything), device=features.device))
