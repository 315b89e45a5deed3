"""Accuracy and forgetting measures against matrices worked by hand, and against plain Python on random ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.metrics import (
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

# Three tasks with 10, 20 and 50 held-out items.
#   after 1: 9/10
#   after 2: 6/10, 16/20
#   after 3: 7/10, 10/20, 40/50
UNEQUAL = AccuracyCounts.from_rows([[9], [6, 16], [7, 10, 40]], [[10], [10, 20], [10, 20, 50]])


@st.composite
def counts_strategy(draw: st.DrawFn) -> AccuracyCounts:
    tasks = draw(st.integers(1, 6))
    totals = draw(st.lists(st.integers(1, 50), min_size=tasks, max_size=tasks))
    correct = [[draw(st.integers(0, totals[j])) for j in range(t + 1)] for t in range(tasks)]
    return AccuracyCounts.from_rows(correct, [totals[: t + 1] for t in range(tasks)])


def test_task_accuracy_is_a_lower_triangle_of_fractions() -> None:
    expected = [[0.9, math.nan, math.nan], [0.6, 0.8, math.nan], [0.7, 0.5, 0.8]]
    np.testing.assert_allclose(task_accuracy(UNEQUAL), expected)


def test_acc_counts_items_not_tasks() -> None:
    np.testing.assert_allclose(acc(UNEQUAL), [9 / 10, 22 / 30, 57 / 80])
    assert final_acc(UNEQUAL) == pytest.approx(57 / 80)
    assert avg_acc(UNEQUAL) == pytest.approx((9 / 10 + 22 / 30 + 57 / 80) / 3)


def test_average_accuracy_counts_tasks_not_items() -> None:
    np.testing.assert_allclose(average_accuracy(UNEQUAL), [0.9, 0.7, 2.0 / 3])
    assert average_accuracy(UNEQUAL)[-1] != pytest.approx(final_acc(UNEQUAL))


def test_forgetting_is_measured_from_the_accuracy_right_after_learning() -> None:
    # after 3: task 1 lost 0.9 - 0.7, task 2 lost 0.8 - 0.5; after 2: task 1 lost 0.9 - 0.6
    np.testing.assert_allclose(afm(UNEQUAL), [0.0, 0.3, 0.25])


def test_a_task_that_improves_later_gives_negative_forgetting() -> None:
    counts = AccuracyCounts.from_rows([[2], [6, 5]], [[10], [10, 10]])
    np.testing.assert_allclose(afm(counts), [0.0, -0.4])
    np.testing.assert_allclose(average_retention(counts), [0.0, 0.4])


def test_learning_accuracy_averages_the_diagonal() -> None:
    np.testing.assert_allclose(ala(UNEQUAL), [0.9, 0.85, 2.5 / 3])


def test_a_single_task_forgets_nothing() -> None:
    counts = AccuracyCounts.from_rows([[3]], [[4]])
    assert afm(counts).tolist() == [0.0]
    assert str(average_retention(counts)[0]) == "0.0"
    assert final_acc(counts) == avg_acc(counts) == ala(counts)[0] == average_accuracy(counts)[0] == 0.75


@given(counts_strategy())
def test_measures_agree_with_plain_python(counts: AccuracyCounts) -> None:
    correct, total = counts.rows()
    accuracy = [[c / n for c, n in zip(cs, ns, strict=True)] for cs, ns in zip(correct, total, strict=True)]
    for t, row in enumerate(accuracy):
        assert acc(counts)[t] == pytest.approx(sum(correct[t]) / sum(total[t]))
        assert average_accuracy(counts)[t] == pytest.approx(sum(row) / len(row))
        assert ala(counts)[t] == pytest.approx(sum(accuracy[i][i] for i in range(t + 1)) / (t + 1))
        lost = [accuracy[i][i] - row[i] for i in range(t)]
        assert afm(counts)[t] == pytest.approx(sum(lost) / t if t else 0.0)


@given(counts_strategy())
def test_average_accuracy_is_learning_accuracy_less_what_was_forgotten(counts: AccuracyCounts) -> None:
    t = counts.tasks
    assert average_accuracy(counts)[-1] == pytest.approx(ala(counts)[-1] - (t - 1) / t * afm(counts)[-1])


@given(counts_strategy())
def test_every_measure_lies_in_its_range(counts: AccuracyCounts) -> None:
    for measure in (acc, average_accuracy, ala):
        assert np.all((measure(counts) >= 0) & (measure(counts) <= 1))
    assert np.all(np.abs(afm(counts)) <= 1)


@given(counts_strategy(), st.data())
def test_later_tasks_do_not_change_earlier_values(counts: AccuracyCounts, data: st.DataObject) -> None:
    tasks = data.draw(st.integers(1, counts.tasks))
    for measure in (acc, average_accuracy, afm, ala):
        np.testing.assert_array_equal(measure(counts.first(tasks)), measure(counts)[:tasks])


@given(counts_strategy(), st.integers(2, 5))
def test_with_equal_tasks_items_and_tasks_weigh_the_same(counts: AccuracyCounts, size: int) -> None:
    tasks = counts.tasks
    correct = [[min(c, size) for c in row] for row in counts.rows()[0]]
    equal = AccuracyCounts.from_rows(correct, [[size] * (t + 1) for t in range(tasks)])
    np.testing.assert_allclose(acc(equal), average_accuracy(equal))


@given(counts_strategy())
def test_rows_round_trip(counts: AccuracyCounts) -> None:
    again = AccuracyCounts.from_rows(*counts.rows())
    assert again == counts
    assert hash(again) == hash(counts)


def test_counts_differ_when_one_item_differs() -> None:
    assert AccuracyCounts.from_rows([[1]], [[4]]) != AccuracyCounts.from_rows([[2]], [[4]])
    assert AccuracyCounts.from_rows([[1]], [[4]]) != "counts"


def test_counts_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        UNEQUAL.correct[0, 0] = 1


def test_counts_do_not_follow_the_array_they_came_from() -> None:
    correct = np.array([[1]])
    counts = AccuracyCounts(correct, np.array([[2]]))
    correct[0, 0] = 2
    assert counts.correct[0, 0] == 1


@pytest.mark.parametrize(
    ("correct", "total", "match"),
    [
        ([[1, 0], [1, 1]], [[2, 0, 0], [2, 2, 0], [2, 2, 2]], "shape"),
        ([[1, 1], [1, 1]], [[2, 2], [2, 2]], "above the diagonal"),
        ([[3]], [[2]], "between 0 and total"),
        ([[-1]], [[2]], "between 0 and total"),
        ([[0]], [[0]], "at least one held-out"),
        ([[1, 0], [1, 1]], [[2, 0], [3, 2]], "same after every task"),
        ([[0.5]], [[1]], "integers"),
        ([1], [1], "square"),
        (np.zeros((0, 0), dtype=int), np.zeros((0, 0), dtype=int), "at least one task"),
    ],
)
def test_malformed_counts_are_refused(correct: Any, total: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        AccuracyCounts(np.array(correct), np.array(total))


def test_rows_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(ValueError, match="row 1 of correct must hold 2"):
        AccuracyCounts.from_rows([[1], [1]], [[1], [1, 1]])


@pytest.mark.parametrize("tasks", [0, 4])
def test_a_prefix_needs_tasks_that_exist(tasks: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 3"):
        UNEQUAL.first(tasks)
