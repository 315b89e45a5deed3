"""Experience replay: the papers' naive baseline."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from reference.engine import Batch
from reference.scratch import ScratchLearner
from suite.sdk import Task


class Replay(ScratchLearner):
    """Fine-tune on the new data and the exemplars together, with cross-entropy over all classes seen.

    As in PyCIL: one shuffled pool, herding, scores from the linear head (option head = "nme": nearest mean of
    exemplars).
    """

    name = "Replay"
    description = "Fine-tuning on new data and exemplars together."

    def learn(self, task: Task) -> None:
        self.enlarge(task.classes)
        self.fit(self.pool(self.with_memory(task)), self.loss, self.recipe_for(task))
        self.remember(task)

    def loss(self, batch: Batch) -> Tensor:
        """CE(z, y) over all classes."""
        return functional.cross_entropy(self.network(batch.images), batch.labels)
