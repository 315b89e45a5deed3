"""Hyperparameter spaces of the from-scratch group (GTEP, table 4).

A dimension with a single value is an option: the harness always draws that value, a track may replace it
(`[space.augmentation]`), and `--hyperparameters` may give another one.
"""

from __future__ import annotations

from typing import Any

from suite.sdk import Choice, Space

STEP: dict[str, list[Any]] = {"scheduler": ["step"]}

GENERAL: dict[str, Choice] = {
    "epochs": Choice([30, 70, 120, 160, 200]),
    "lr": Choice([0.05, 0.1, 0.15, 0.2, 0.3]),
    "scheduler": Choice(["step", "cosine"]),
    "num_milestones": Choice([2, 3, 4], when=STEP),
    "lr_decay": Choice([0.1, 0.3, 0.5], when=STEP),
    "batch_size": Choice([32, 64, 128, 256, 512]),
    "weight_decay": Choice([0.0001, 0.0005, 0.001, 0.005]),
}
"""What table 4 lists for all algorithms. `num_milestones` may also be literal epochs as text, such as "30 50"."""

TEMPERATURE = Choice([0.5, 1, 1.5, 2, 2.5])
STRENGTH = Choice([0.5, 1, 1.5, 2, 3])

OPTIONS: dict[str, Choice] = {
    "augmentation": Choice(["crop_flip_jitter"]),
    "precision": Choice(["float32"]),
}
"""augmentation: `crop_flip_jitter`, `crop_jitter`, `none`; precision: `float32`, `bfloat16` (autocast, CUDA only)."""


def scratch_space(specific: dict[str, Choice] | None = None, **options: Any) -> Space:
    """The general dimensions, the method's own, and options given by their one value."""
    return Space({**GENERAL, **(specific or {}), **OPTIONS, **{name: Choice([v]) for name, v in options.items()}})
