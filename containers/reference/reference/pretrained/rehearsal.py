"""Training the whole ViT on a stream and a reservoir together (ER, CLS-ER)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from reference.engine import Batch, Pool
from reference.pretrained.reservoir import Reservoir
from reference.pretrained.whole import WholeNetworkLearner
from suite.protocol.messages import LearnResult
from suite.sdk import Context, Task


class StreamAndMemory:
    """Batches of the task, each followed by as many items of the memory, augmented alike.

    `rows` is the row in the task, or -1 for an item of the memory. Items of the stream are offered to the memory, as
    they are, after they were trained on for the first time.
    """

    def __init__(self, learner: RehearsalLearner, task: Task) -> None:
        self._learner, self._task = learner, task
        self._pool: Pool = learner.pool(task)
        self._is_first_epoch = True

    def epoch(self) -> Iterator[Batch]:
        memory = self._learner.memory
        for batch in self._pool.epoch():
            yield self._with(memory.draw(len(batch.labels)), batch) if len(memory) else batch
            if self._is_first_epoch:
                for row in batch.rows.tolist():
                    memory.offer(self._task.images[row], int(self._task.labels[row]))
        self._is_first_epoch = False

    def _with(self, drawn: tuple[np.ndarray, np.ndarray], batch: Batch) -> Batch:
        images, labels = drawn
        preprocess, device = self._learner.backbone.preprocess, self._learner.device
        pixels = preprocess.train(preprocess.store(images, device), torch.arange(len(labels), device=device))
        marks = torch.full((len(labels),), -1, device=device)
        return Batch(
            torch.cat([batch.images, pixels]),
            torch.cat([batch.labels, torch.from_numpy(labels).to(device)]),
            torch.cat([batch.rows.to(device), marks]),
        )


class RehearsalLearner(WholeNetworkLearner):
    """A learner with a reservoir, whose head trains as a whole."""

    carried: ClassVar[tuple[str, ...]] = ("memory",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.memory = Reservoir(context.setup.exemplars)

    def begin(self, classes: list[int]) -> int:
        before = super().begin(classes)
        self.memory.open(self.seen)
        return before

    def logits(self, pixels: Tensor) -> Tensor:
        """Logits [B, C] of the network at hand, with gradients."""
        logits: Tensor = self.network.head(self.network.body(pixels))
        return logits

    def report(self) -> LearnResult:
        return super().report().model_copy(update={"exemplars": self.memory.counts()})
