"""The training loop, written once, and passes over images without gradients."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from reference.augment import Transform
from reference.optim import Parameters, build_optimizer, set_rate
from reference.schedules import Recipe
from suite.sdk import DivergedError

EVAL_BATCH = 256
_SECONDS_BETWEEN_NOTES = 0.5


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


@dataclass(frozen=True)
class Hooks:
    """What a method may add to the loop."""

    before_step: Callable[[], None] | None = None
    """Called between backward and step (to clamp or mask gradients)."""
    note: Callable[[int, int, float], None] | None = None
    """Told (epoch, epochs, mean loss), at most twice a second and after the last epoch."""


def fit(
    network: nn.Module,
    parameters: Parameters,
    source: Source,
    loss_of: Callable[[Batch], Tensor],
    recipe: Recipe,
    hooks: Hooks = Hooks(),
) -> None:
    """Train `parameters` for the recipe's epochs on `loss_of(batch)`; `network` is put into training mode each epoch.

    Raises DivergedError after the first epoch whose loss is not finite.
    """
    optimizer = build_optimizer(parameters, recipe)
    epochs, told = recipe.schedule.epochs, -math.inf
    for epoch in range(epochs):
        set_rate(optimizer, recipe.schedule.lr_at(epoch))
        network.train()
        losses = []
        for batch in source.epoch():
            loss = loss_of(batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            if hooks.before_step:
                hooks.before_step()
            optimizer.step()
            losses.append(loss.detach())
        mean = float(torch.stack(losses).mean()) if losses else 0.0
        if not math.isfinite(mean):
            raise DivergedError(f"the training loss is {mean} in epoch {epoch + 1} of {epochs}")
        if hooks.note and (epoch + 1 == epochs or time.monotonic() - told >= _SECONDS_BETWEEN_NOTES):
            told = time.monotonic()
            hooks.note(epoch + 1, epochs, mean)
    optimizer.zero_grad()


@torch.no_grad()
def apply(
    function: Callable[[Tensor], Tensor],
    images: np.ndarray,
    transform: Transform,
    device: torch.device,
    batch_size: int = EVAL_BATCH,
) -> np.ndarray:
    """function(test-time input) over uint8 images [N, H, W, C], batch by batch, without gradients: float32 [N, ...].

    The caller puts the network into evaluation mode.
    """
    parts = []
    for start in range(0, len(images), batch_size):
        piece = torch.from_numpy(np.array(images[start : start + batch_size])).to(device)
        parts.append(function(transform.test(piece)).float().cpu().numpy())
    return np.concatenate(parts)
