"""MAS with exemplars, as the representation paper evaluates it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from reference.methods.mas import GRID, MAS
from reference.spaces import scratch_space
from suite.sdk import Task


class MASExemplars(MAS):
    """MAS on new data and exemplars, with cross-entropy over all classes and all heads training.

    Exemplars are drawn at random (representation paper, appendix A). Scores: linear heads, concatenated (option
    head = "nme").
    """

    name = "MAS-E"
    description = "Importance-weighted anchoring of parameters, with exemplars."
    space = scratch_space(GRID, alpha=0.5, head="linear")
    selection = "random"

    def freeze_heads(self) -> None:
        """All heads train."""

    def trained_classes(self, task: Task) -> Tensor | None:  # noqa: ARG002
        """All columns."""
        return None

    def training_data(self, task: Task) -> Any:
        """New data and exemplars."""
        return self.with_memory(task)

    def keep(self, task: Task) -> None:
        """Exemplars of the task's classes."""
        self.remember(task)
