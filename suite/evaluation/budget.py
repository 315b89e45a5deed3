"""How much wall clock a trial has left. Pure: it is told what was used."""

from __future__ import annotations

from collections.abc import Sequence

from suite.errors import LearnerError
from suite.status import Status
from suite.store.records import TaskRecord
from suite.tracks import Budgets


def used_seconds(tasks: Sequence[TaskRecord]) -> float:
    """Seconds of `learn` and `predict` that the tasks done so far count against `trial_seconds`."""
    return sum(t.resources.train_seconds + t.resources.post_seconds + t.resources.predict_seconds for t in tasks)


def learn_seconds(budgets: Budgets, used: float) -> float:
    """What one `learn` may take. Raises LearnerError when the trial's budget is spent."""
    return _left(budgets, used, budgets.task_seconds)


def predict_seconds(budgets: Budgets, used: float) -> float:
    """What one `predict` may take. Raises LearnerError when the trial's budget is spent."""
    return _left(budgets, used, budgets.predict_seconds)


def _left(budgets: Budgets, used: float, cap: float) -> float:
    left = min(cap, budgets.trial_seconds - used)
    if left <= 0:
        raise LearnerError(
            Status.TIMED_OUT,
            f"The trial took more than {budgets.trial_seconds:g} s (trial_seconds).",
            "Train for fewer epochs, or on a smaller network.",
        )
    return left
