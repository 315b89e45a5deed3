"""Hyperparameter spaces of the methods on a pretrained backbone (GTEP, table 5).

The two groups differ in epochs, learning rate, weight decay and adapter size. A method without a published set takes
that of its group and a grid around its own constants. A dimension with a single value is an option: a track or a preset
may set another.
"""

from __future__ import annotations

from typing import Any

from suite.sdk import Choice, Space

STEP: dict[str, list[Any]] = {"scheduler": ["step"]}

PROMPT: dict[str, Choice] = {
    "epochs": Choice([3, 5, 10, 15, 20, 25]),
    "lr": Choice([0.000875, 0.001375, 0.001875, 0.002375, 0.0025]),
    "scheduler": Choice(["step", "cosine", "constant"]),
    "num_milestones": Choice([2, 3, 4], when=STEP),
    "lr_decay": Choice([0.1, 0.3, 0.5], when=STEP),
    "batch_size": Choice([8, 16, 24, 48, 64, 128]),
    "weight_decay": Choice([0, 0.0001, 0.0005]),
    "optimizer": Choice(["sgd", "adam", "adamw"]),
}
"""L2P, DualPrompt, CODA-Prompt; here also PGP, HiDe-Prompt and LAE."""

REPRESENTATION: dict[str, Choice] = {
    "epochs": Choice([5, 10, 15, 20, 25, 30]),
    "lr": Choice([0.01, 0.02, 0.03, 0.04, 0.05]),
    "scheduler": Choice(["step", "cosine", "constant"]),
    "num_milestones": Choice([2, 3, 4], when=STEP),
    "lr_decay": Choice([0.1, 0.3, 0.5], when=STEP),
    "batch_size": Choice([8, 16, 24, 48, 64, 128]),
    "weight_decay": Choice([0.0001, 0.0005, 0.001, 0.005]),
    "optimizer": Choice(["sgd", "adam", "adamw"]),
}
"""Adam-Adapter, RanPAC, EASE; here also the methods that train the whole network."""

ADAPTER = {"ffn_num": Choice([4, 8, 16, 32, 64])}
"""Width of an adapter's bottleneck."""

WHOLE_NETWORK = {**REPRESENTATION, "optimizer": Choice(["sgd"]), "backbone_lr_scale": Choice([0.003, 0.01, 0.03])}
"""Methods that train the ViT itself: its learning rate is a fraction of the head's (SLCA: 0.01)."""

OPTIONS = {"augmentation": Choice(["resized_crop_flip"])}
"""`resized_crop_flip` (natural images), `crop` (characters: a mirror image is another class), `none`."""


def space_of(group: dict[str, Choice], specific: dict[str, Choice] | None = None, **options: Any) -> Space:
    """A group's dimensions, the method's own, and options given by their one value."""
    return Space({**group, **(specific or {}), **OPTIONS, **{name: Choice([v]) for name, v in options.items()}})
