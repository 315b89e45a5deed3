"""Where training batches come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from reference.augment import Transform


class Batch(NamedTuple):
    """One batch: network input [B, C, H, W], labels int64 [B], and the rows of the pool it was made from."""

    images: Tensor
    labels: Tensor
    rows: Tensor


class Source(Protocol):
    """Yields the batches of one epoch."""

    def epoch(self) -> Iterator[Batch]: ...


class Pool:
    """Images on the device as uint8, with labels: shuffled, augmented batches of each epoch.

    A last batch of a single image joins the batch before it, because batch normalisation learns nothing from one.
    """

    def __init__(
        self, images: np.ndarray, labels: np.ndarray, transform: Transform, batch_size: int, device: torch.device
    ) -> None:
        self.stored = transform.store(images, device)
        self.labels = torch.from_numpy(np.ascontiguousarray(labels)).to(device)
        self._transform = transform
        self._batch_size = batch_size

    def __len__(self) -> int:
        return len(self.labels)

    def epoch(self) -> Iterator[Batch]:
        for rows in split_rows(torch.randperm(len(self)), self._batch_size):
            yield self.batch(rows)

    def batch(self, rows: Tensor) -> Batch:
        """The augmented batch of the given rows."""
        rows = rows.to(self.labels.device)
        return Batch(self._transform.train(self.stored, rows), self.labels[rows], rows)


def split_rows(rows: Tensor, size: int) -> list[Tensor]:
    """Pieces of at most `size` rows; a last piece of one row joins the piece before it."""
    pieces = list(torch.split(rows, size))
    if len(pieces) > 1 and len(pieces[-1]) == 1:
        pieces[-2:] = [torch.cat(pieces[-2:])]
    return pieces
