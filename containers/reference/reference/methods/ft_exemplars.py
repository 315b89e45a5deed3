"""Fine-tuning with exemplars."""

from __future__ import annotations

from reference.methods.replay import Replay
from reference.spaces import scratch_space


class FineTuningExemplars(Replay):
    """Fine-tune on new data and exemplars together, with randomly drawn exemplars.

    FT as in the representation paper (appendix A: random sampling). It differs from `replay` in nothing but how the
    exemplars are chosen. Scores: linear head.
    """

    name = "FT-E"
    description = "Fine-tuning with randomly drawn exemplars."
    space = scratch_space(head="linear")
    selection = "random"
