"""Batches that do not come from a task's images alone: replayed features, and calls after each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from reference.engine import Batch, Source


class Replayed:
    """Features drawn anew each epoch: `draw(label)` gives [n, D] of a class; batches are shuffled over all classes."""

    def __init__(self, classes: list[int], draw: Callable[[int], Tensor], batch_size: int) -> None:
        self._classes = classes
        self._draw = draw
        self._batch_size = batch_size

    def epoch(self) -> Iterator[Batch]:
        drawn = [self._draw(label) for label in self._classes]
        features = torch.cat(drawn)
        labels = torch.repeat_interleave(torch.tensor(self._classes), torch.tensor([len(d) for d in drawn]))
        labels = labels.to(features.device)
        for rows in torch.split(torch.randperm(len(labels)).to(features.device), self._batch_size):
            yield Batch(features[rows], labels[rows], rows)


class Rows:
    """Shuffled batches of fixed features [N, D]: frozen features are computed once and used in every epoch."""

    def __init__(self, features: Tensor, labels: Tensor, batch_size: int) -> None:
        self._features = features
        self._labels = labels
        self._batch_size = batch_size

    def epoch(self) -> Iterator[Batch]:
        for rows in torch.split(torch.randperm(len(self._labels)).to(self._labels.device), self._batch_size):
            yield Batch(self._features[rows], self._labels[rows], rows)


class Watched:
    """A source that calls `before_epoch(index)` at the start of each epoch and `after_step()` after each step."""

    def __init__(
        self,
        source: Source,
        before_epoch: Callable[[int], None] | None = None,
        after_step: Callable[[], None] | None = None,
    ) -> None:
        self._source = source
        self._before_epoch = before_epoch
        self._after_step = after_step
        self._epochs = 0

    def epoch(self) -> Iterator[Batch]:
        if self._before_epoch:
            self._before_epoch(self._epochs)
        self._epochs += 1
        for batch in self._source.epoch():
            yield batch
            if self._after_step:  # the loop asks for the next batch once the step is made
                self._after_step()
