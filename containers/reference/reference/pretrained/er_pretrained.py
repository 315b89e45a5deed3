"""Experience replay on a pretrained ViT (Rolnick et al., 2019; CLDyB, B.2)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from reference.engine import Batch
from reference.pretrained.rehearsal import RehearsalLearner, StreamAndMemory
from reference.pretrained.spaces import WHOLE_NETWORK, space_of
from suite.sdk import Space, Task


class ERPretrained(RehearsalLearner):
    """Fine-tune everything on batches of the stream joined with as many items from a reservoir."""

    name = "ER"
    description = "Fine-tuning of the whole ViT with a reservoir of images"
    space: ClassVar[Space] = space_of(WHOLE_NETWORK)

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        network = self.network.requires_grad_(True)

        def loss(batch: Batch) -> Tensor:
            return functional.cross_entropy(self.logits(batch.images), batch.labels)

        groups = self.groups(network.body, network.head)
        self.fit(network, StreamAndMemory(self, task), loss, self.recipe(), groups=groups)
