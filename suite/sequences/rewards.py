"""What a challenging sequence is worth: forgetting minus learning accuracy, as fractions (CLDyB eq. 4 to 6)."""

from __future__ import annotations

from collections.abc import Sequence

from suite.metrics import AccuracyCounts, afm, ala


def learner_reward(counts: AccuracyCounts) -> float:
    """R of one learner after the last task counted: AFM - ALA, in [-2, 1] (section 3.2)."""
    return float(afm(counts)[-1] - ala(counts)[-1])


def group_reward(counts: Sequence[AccuracyCounts]) -> float:
    """R(F^{t-1}, T^t): the mean over M learners of AFM - ALA after task t.

    AFM and ALA of a group are means over its learners, so the mean of the differences is the difference of the means.
    At t = N this is the objective of eq. 4.
    """
    if not counts:
        raise ValueError("a group has at least one learner")
    return sum(learner_reward(each) for each in counts) / len(counts)


def discounted(rewards: Sequence[float], discount: float) -> float:
    """Sum over i of discount^i R_i, i from 0 (eq. 5; eq. 6 is the case of discount 1)."""
    if not 0 < discount <= 1:
        raise ValueError(f"the discount must lie in (0, 1], not be {discount}")
    total = 0.0
    for reward in reversed(rewards):
        total = reward + discount * total
    return total
