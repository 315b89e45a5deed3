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
from suite.metrics.representation import (
    ClassifierDistance,
    LinearProbe,
    SgdSettings,
    distance_to_optimal,
    knn_accuracy,
    linear_cka,
    ridge_probe,
    sgd_probe,
)
from suite.metrics.selection import Summary, best_draw, harmonic_mean, selection_score, summarise

__all__ = [
    "AccuracyCounts",
    "ClassifierDistance",
    "Correlation",
    "LinearProbe",
    "SgdSettings",
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
    "distance_to_optimal",
    "final_acc",
    "harmonic_mean",
    "kendall",
    "knn_accuracy",
    "linear_cka",
    "memory_b4",
    "p_value",
    "ridge_probe",
    "selection_score",
    "sgd_probe",
    "spearman",
    "summarise",
    "task_accuracy",
]
