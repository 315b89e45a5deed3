"""Pure functions of numpy arrays: accuracies, forgetting, ranks, probes, similarity. No files, clocks or containers."""

from __future__ import annotations

from suite.metrics.counts import (
    AccuracyCounts,
    acc,
    afm,
    ala,
    average_accuracy,
    average_retention,
    avg_acc,
    final_acc,
    task_accuracy,
)
from suite.metrics.memory import memory_b4
from suite.metrics.ranks import (
    Correlation,
    average_ranks,
    bootstrap_interval,
    competition_ranks,
    correlate,
    kendall,
    p_value,
    spearman,
)
from suite.metrics.selection import Summary, best_draw, harmonic_mean, selection_score, summarise

__all__ = [
    "AccuracyCounts",
    "Correlation",
    "Summary",
    "acc",
    "afm",
    "ala",
    "average_accuracy",
    "average_ranks",
    "average_retention",
    "avg_acc",
    "best_draw",
    "bootstrap_interval",
    "competition_ranks",
    "correlate",
    "final_acc",
    "harmonic_mean",
    "kendall",
    "memory_b4",
    "p_value",
    "selection_score",
    "spearman",
    "summarise",
    "task_accuracy",
]
