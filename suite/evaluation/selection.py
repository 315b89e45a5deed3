"""From the tuning trials to the hyperparameters that are used unchanged (GTEP, algorithm 2, line 10). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from suite.metrics import AccuracyCounts, avg_acc, best_draw, final_acc, selection_score
from suite.protocol import Point
from suite.status import Status
from suite.store.records import Selection, TaskRecord, TrialRecord


def counts_of(tasks: Sequence[TaskRecord]) -> AccuracyCounts:
    """The accuracy counts that a trial's task records hold."""
    return AccuracyCounts.from_rows([t.correct for t in tasks], [t.total for t in tasks])


def draw_score(trials: Sequence[TrialRecord], seeds: int) -> float | None:
    """Harmonic mean of seed-mean Acc and seed-mean AvgAcc; None if a seed failed or is missing."""
    if len(trials) != seeds or any(t.status is not Status.OK for t in trials):
        return None
    counts = [counts_of(t.tasks) for t in trials]
    return selection_score([final_acc(c) for c in counts], [avg_acc(c) for c in counts])


def select(points: Sequence[Point], trials: Mapping[int, Sequence[TrialRecord]], seeds: int) -> Selection:
    """The best eligible draw, ties to the earlier; `trials` holds each draw's records.

    When no draw is eligible, the entry reads failed with the kind that most failed seeds have (BEEF in the paper).
    """
    scores = [draw_score(trials.get(r, ()), seeds) for r in range(len(points))]
    eligible = [r for r, score in enumerate(scores) if score is not None]
    best = best_draw(scores)
    if best is None:
        kinds = Counter(t.status for draw in trials.values() for t in draw if t.status is not Status.OK)
        failure = max(kinds, key=lambda kind: (kinds[kind], kind.value)) if kinds else Status.CRASHED
        return Selection(
            draw=None, hyperparameters=None, score=None, eligible_draws=0, draws=len(points), failure=failure
        )
    worst = min(eligible, key=lambda r: (scores[r] or 0.0, r))
    return Selection(
        draw=best,
        hyperparameters=points[best],
        score=scores[best],
        worst_draw=worst,
        eligible_draws=len(eligible),
        draws=len(points),
    )
