"""SS-IL: Separated Softmax for Incremental Learning (Ahn et al., 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from reference.batches import Batch, Pool, split_rows
from reference.networks.incremental import Network, frozen
from reference.scratch import ScratchLearner
from reference.spaces import TEMPERATURE, scratch_space
from suite.sdk import Task


class PairedSource:
    """Batches of new images followed by exemplars, a quarter as many; the exemplars are cycled. `rows` < 0 marks them.

    Incomplete batches are dropped, unless there is no complete one.
    """

    def __init__(self, new: Pool, exemplars: Pool | None, batch_size: int) -> None:
        self._new = new
        self._exemplars = exemplars
        self._sizes = min(batch_size, len(new)), min(max(batch_size // 4, 1), len(exemplars) if exemplars else 1)

    def epoch(self) -> Iterator[Batch]:
        cycle = self._cycle()
        for rows in split_rows(torch.randperm(len(self._new)), self._sizes[0]):
            if len(rows) < self._sizes[0]:
                continue
            batch = self._new.batch(rows)
            if self._exemplars is None:
                yield batch
                continue
            old = self._exemplars.batch(next(cycle))
            images = torch.cat([batch.images, old.images]).contiguous(memory_format=torch.channels_last)
            yield Batch(images, torch.cat([batch.labels, old.labels]), torch.cat([batch.rows, -1 - old.rows]))

    def _cycle(self) -> Iterator[Tensor]:
        while self._exemplars is not None:
            for rows in split_rows(torch.randperm(len(self._exemplars)), self._sizes[1]):
                if len(rows) >= self._sizes[1]:
                    yield rows


class SSIL(ScratchLearner):
    """New samples compete among new classes, exemplars among old ones; distillation goes task by task.

    Loss: [sum CE_new + sum CE_old] / (N_new + N_old) + sum over earlier tasks of T^2 KL over that task's logits, mean
    over all samples. Rate of task t: lr / (t + 1). Each batch pairs new images with a quarter as many exemplars. The
    exemplars are the first images of each class, as in the official code (whose few left-over places, when the budget
    is no multiple of the classes, stay empty here). Official: T = 2, weight decay 1e-4; table 4 has no SS-IL, so T has
    the group's grid. Scores: linear head.
    """

    name = "SS-IL"
    description = "Separated softmax and task-wise distillation."
    space = scratch_space({"temperature": TEMPERATURE}, head="linear")
    selection = "first"

    def learn(self, task: Task) -> None:
        teacher = None if task.is_first else frozen(self.network)
        bounds = [0, *self.steps]
        old = self.enlarge(task.classes)
        recipe = self.recipe_for(task)
        recipe = recipe.rescaled(lr=recipe.schedule.lr / (task.index + 1))
        exemplars = self.pool(self.memory.arrays()) if len(self.memory) else None
        source = PairedSource(self.pool((task.images, task.labels)), exemplars, recipe.batch_size)
        self.fit(source, lambda batch: self.loss(batch, old, bounds, teacher), recipe)
        self.stage("post")
        self.remember(task)

    def loss(self, batch: Batch, old: int, bounds: list[int], teacher: Network | None) -> Tensor:
        """L_ss + L_tkd (equations 3 and 5)."""
        z = self.network(batch.images)
        loss = self.separated(z, batch.labels, old)
        if teacher is None:
            return loss
        previous = teacher(batch.images)
        for start, end in pairwise(bounds):
            loss = loss + self.task_distillation(z[:, start:end], previous[:, start:end])
        return loss

    def separated(self, z: Tensor, labels: Tensor, old: int) -> Tensor:
        """Cross-entropy of each sample within its side: classes before `old`, or from `old` on; mean over all."""
        is_new = (torch.arange(z.shape[1], device=z.device) >= old).unsqueeze(0)
        other_side = is_new != (labels >= old).unsqueeze(1)
        return functional.cross_entropy(z.masked_fill(other_side, -torch.inf), labels)

    def task_distillation(self, z: Tensor, teacher: Tensor) -> Tensor:
        """T^2 KL(softmax(z'/T) || softmax(z/T)), mean over samples."""
        t = self.number("temperature")
        p = functional.log_softmax(z / t, 1)
        q = functional.log_softmax(teacher / t, 1)
        return functional.kl_div(p, q, reduction="batchmean", log_target=True) * t**2
