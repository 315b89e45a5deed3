"""The training loop, written once, and passes over images without gradients."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from reference.augment import Transform
from reference.batches import Batch, Pool, Source
from reference.gradients import Eager, Graphed, Precision
from reference.optim import Parameters, build_optimizer, set_rate
from reference.schedules import Recipe
from suite.sdk import DivergedError

__all__ = ["EVAL_BATCH", "Batch", "Hooks", "Pool", "Source", "apply", "fit", "warm_up"]

EVAL_BATCH = 256
_SECONDS_BETWEEN_NOTES = 0.5


@dataclass(frozen=True)
class Hooks:
    """What a method may add to the loop."""

    before_step: Callable[[], None] | None = None
    """Called between backward and step (to clamp or mask gradients)."""
    note: Callable[[int, int, float], None] | None = None
    """Told (epoch, epochs, mean loss), at most twice a second and after the last epoch."""
    precision: Precision = "float32"
    graphs: bool = False
    """Whether full batches are replayed from a CUDA graph; on a CPU nothing changes."""


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
    if hooks.graphs and torch.cuda.is_available():
        gradients: Eager = Graphed(loss_of, parameters, hooks.precision, batch_size=recipe.batch_size)
    else:
        gradients = Eager(loss_of, parameters, hooks.precision)
    epochs, told = recipe.schedule.epochs, -math.inf
    for epoch in range(epochs):
        set_rate(optimizer, recipe.schedule.lr_at(epoch))
        network.train()
        losses = []
        for batch in source.epoch():
            losses.append(gradients(batch))
            if hooks.before_step:
                hooks.before_step()
            optimizer.step()
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


def warm_up(backbone: nn.Module, side: int, channels: int, batch_size: int, device: torch.device) -> None:
    """One training and one evaluation pass on noise: contexts, kernel choices and caches are there before data are."""
    images = torch.rand(batch_size, channels, side, side, device=device).contiguous(memory_format=torch.channels_last)
    backbone.train()
    backbone(images).sum().backward()
    backbone.eval()
    with torch.no_grad():
        backbone(images)
    if device.type == "cuda":
        torch.cuda.synchronize()
