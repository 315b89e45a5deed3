"""EASE (Zhou et al., 2024, CVPR): one set of adapters per task, class means in every set's feature space."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.pretrained.adapted import AdaptedLearner
from reference.pretrained.adapters import MlpAdapters
from reference.pretrained.base import Growing
from reference.pretrained.spaces import ADAPTER, REPRESENTATION, space_of
from reference.vit import run
from suite.sdk import Choice, Space, Task


class SpacePrototypes(Growing):
    """Class means in several feature spaces: sums float64 [C, S, D] and counts [C, S].

    A class has no count in the spaces that were made after its data were there; its mean there is synthesised.
    """

    sums: Tensor
    counts: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("sums", torch.zeros(0, 0, width, dtype=torch.float64))
        self.register_buffer("counts", torch.zeros(0, 0, dtype=torch.int64))

    def grow(self, classes: int) -> None:
        more = classes - len(self.counts)
        self.sums, self.counts = (
            functional.pad(self.sums, (0, 0, 0, 0, 0, more)),
            functional.pad(self.counts, (0, 0, 0, more)),
        )

    def open(self) -> None:
        """One more space."""
        self.sums, self.counts = functional.pad(self.sums, (0, 0, 0, 1)), functional.pad(self.counts, (0, 1))

    def add(self, features: Tensor, labels: Tensor) -> None:
        """Take in features [N, S, D] in all spaces."""
        for label in sorted(set(labels.tolist())):
            mine = features[labels == label]
            self.sums[label] += mine.double().sum(0)
            self.counts[label] += len(mine)

    def complete(self, home: Tensor) -> Tensor:
        """Means float32 [C, S, D]; `home` [C] is the space of the task in which a class came first.

        Where a class c has none, those of the classes that have one, mixed by softmax of their cosines to c in c's
        home space (eq. 10 to 12).
        """
        means = (self.sums / self.counts.clamp(min=1).unsqueeze(-1)).float()
        unit, result = functional.normalize(means, dim=-1), means.clone()
        for space in range(means.shape[1]):
            known, missing = self.counts[:, space] > 0, (self.counts[:, space] == 0).nonzero().flatten()
            theirs = unit[known][:, home[missing]]  # [known, missing, D]
            cosines = torch.einsum("kmd,md->mk", theirs, unit[missing, home[missing]])
            result[missing, space] = cosines.softmax(1) @ means[known, space]
        return result


class Spaces(nn.Module):
    """The adapters of all tasks, and the class means in their spaces."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.adapters = nn.ModuleList()
        self.prototypes = SpacePrototypes(width)


class Ease(AdaptedLearner):
    """Every task tunes adapters of its own, which are kept; tasks may be of any size."""

    name = "EASE"
    description = "Adapters per task, class means in all their spaces, missing ones synthesised"
    space: ClassVar[Space] = space_of(REPRESENTATION, {**ADAPTER, "alpha": Choice([0.01, 0.05, 0.1, 0.15, 0.2])})
    network: Spaces

    def build(self) -> Spaces:
        return Spaces(self.width)

    def open_task(self) -> None:
        self.network.adapters.append(MlpAdapters(self.backbone, self.option("ffn_num")))
        self.network.prototypes.open()

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        newest = self.network.adapters[-1]
        self.tune(task, newest, lambda pixels: self.seen_through(newest, pixels))
        self.stage("post")
        self.network.prototypes.add(self.gather(task.images, self.in_spaces), self.labels(task))

    def seen_through(self, adapters: nn.Module, pixels: Tensor) -> Tensor:
        """Features [B, D] of the ViT with one set of adapters."""
        assert isinstance(adapters, MlpAdapters)  # noqa: S101  (for the type checker)
        return self.backbone.pool(run(self.backbone.vit, pixels, adapters.attached()))

    def in_spaces(self, pixels: Tensor) -> Tensor:
        """Features in all spaces [B, S, D]: as many forwards as tasks."""
        return torch.stack([self.seen_through(adapters, pixels) for adapters in self.network.adapters], 1)

    def features(self, pixels: Tensor) -> Tensor:
        return self.in_spaces(pixels).flatten(1)

    @property
    def home(self) -> Tensor:
        """Index [C] of the task in which each class came first."""
        first: dict[int, int] = {}
        for index, classes in enumerate(self.tasks):
            for label in classes:
                first.setdefault(label, index)
        return torch.tensor([first[label] for label in range(self.seen)], device=self.device)

    def scores(self, pixels: Tensor) -> Tensor:
        """Cosine in the class's own space + alpha * mean of the cosines in the others (eq. 14)."""
        features = functional.normalize(self.in_spaces(pixels), dim=-1)
        prototypes = functional.normalize(self.network.prototypes.complete(self.home), dim=-1)
        cosines = torch.einsum("bsd,csd->bcs", features, prototypes)
        own = cosines.gather(2, self.home.expand(len(cosines), -1).unsqueeze(2)).squeeze(2)
        others = (cosines.sum(2) - own) / max(1, len(self.tasks) - 1)
        weight: float = self.option("alpha")
        return own + weight * others
