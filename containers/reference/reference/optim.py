"""Optimisers by name, in the fastest form that gives the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from reference.schedules import Recipe

Parameters = Sequence[Tensor] | Sequence[dict[str, Any]]


def build_optimizer(parameters: Parameters, recipe: Recipe) -> torch.optim.Optimizer:
    """SGD with momentum, Adam or AdamW, fused; its rate is set by the training loop at each epoch.

    A parameter group may carry `scale`: its learning rate is that multiple of the schedule's.
    """
    lr, decay = recipe.schedule.lr, recipe.weight_decay
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr, momentum=recipe.momentum, weight_decay=decay, fused=True)
    if recipe.optimizer == "adam":
        return torch.optim.Adam(parameters, lr, weight_decay=decay, fused=True)
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr, weight_decay=decay, fused=True)
    raise ValueError(f"unknown optimizer {recipe.optimizer!r}")


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Set the learning rate of every group, times the group's `scale`."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group.get("scale", 1.0)
