"""Joint training: the upper bound."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from reference.engine import Batch
from reference.memory import joined
from reference.scratch import ScratchLearner
from reference.spaces import scratch_space
from suite.sdk import Task


class Joint(ScratchLearner):
    """Train on all data seen so far, for which it asks the privilege `past_data`; it is shown, never ranked.

    Each step goes on from the network before (as FACIL does). Option restart = true: each step starts from a new
    network, as if all its data had come at once. Scores: linear head.
    """

    name = "Joint"
    description = "Training on the data of all tasks so far: the upper bound."
    space = scratch_space(restart=False)
    privileges = ("past_data",)

    def learn(self, task: Task) -> None:
        self.enlarge(task.classes)
        if self.option("restart"):
            self.network = self.build(self.seen).to(self.device)
        data = (task.images, task.labels)
        if task.past_images is not None and task.past_labels is not None:
            data = joined((task.past_images, task.past_labels), data)
        self.fit(self.pool(data), self.loss, self.recipe_for(task))

    def loss(self, batch: Batch) -> Tensor:
        """CE(z, y) over all classes."""
        return functional.cross_entropy(self.network(batch.images), batch.labels)
