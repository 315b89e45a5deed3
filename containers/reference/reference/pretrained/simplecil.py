"""SimpleCIL: a frozen backbone and the mean feature of each class (Zhou et al., 2023, Revisiting class-incremental
learning with pre-trained models). No training, nothing to tune: logits are cosines to the prototypes (eq. 4 there).
"""

from __future__ import annotations

import numpy as np
from torch import Tensor
from torch.nn import functional

from reference.pretrained.base import PretrainedLearner
from reference.pretrained.statistics import Prototypes, cosine
from suite.sdk import Task


class SimpleCIL(PretrainedLearner):
    """Prototype classifier on frozen features."""

    name = "SimpleCIL"
    description = "Frozen backbone, class means, cosine similarity"
    network: Prototypes

    def build(self) -> Prototypes:
        return Prototypes(self.width)

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        features = self.gather(task.images, self.features)
        self.network.add(features, self.labels(task))

    def scores(self, pixels: Tensor) -> Tensor:
        return cosine(self.features(pixels), self.network.means())

    def classifier(self) -> np.ndarray:
        """Unit prototypes, float32 [D, C]."""
        weights: np.ndarray = functional.normalize(self.network.means(), dim=1).T.cpu().numpy()
        return weights
