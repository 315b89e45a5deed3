"""What replaces a part of the pipeline does just that (section 5.2 of the paper)."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.sequences.ablations import most_similar, random_path, random_task, uniform_tasks


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 99))
def test_a_random_path_keeps_its_first_task_and_repeats_no_class(size: int, tasks: int, seed: int) -> None:
    first = tuple(range(size))
    path = random_path(first, size * tasks + 3, tasks, seed)
    assert path[0] == first
    assert [len(task) for task in path] == [size] * tasks
    assert len({label for task in path for label in task}) == size * tasks


def test_random_tasks_are_uniform() -> None:
    counted = collections.Counter(label for seed in range(3000) for label in random_task([3, 5, 8, 9, 11], 2, seed))
    for label in (3, 5, 8, 9, 11):
        assert counted[label] / 3000 == pytest.approx(2 / 5, abs=0.04)


def test_uniform_tasks_draw_a_data_set_before_its_classes() -> None:
    sources = ["small"] * 3 + ["large"] * 60
    drawn = [uniform_tasks(range(63), sources, 2, 1, seed)[0] for seed in range(600)]
    assert all(len({sources[label] for label in task}) == 1 for task in drawn)
    assert sum(sources[task[0]] == "small" for task in drawn) / 600 == pytest.approx(0.5, abs=0.07)


def test_uniform_tasks_are_distinct_and_leave_out_data_sets_that_are_used_up() -> None:
    tasks = uniform_tasks([0, 1, 2, 7], ["a", "a", "a", "a", "b", "b", "b", "b"], 2, 50, seed=0)
    assert sorted(tasks) == [(0, 1), (0, 2), (1, 2)]


def test_uniform_tasks_mix_data_sets_when_none_is_large_enough() -> None:
    assert uniform_tasks([0, 4], ["a", "a", "a", "a", "b"], 2, 5, seed=0) == [(0, 4)]


def test_the_most_similar_task_points_where_the_learned_ones_do() -> None:
    old = [np.array([[1.0, 0.0], [1.0, 0.2]])]
    away, near, nearer = [[0.0, 1.0]], [[1.0, 0.5]], [[5.0, 0.5]]
    assert most_similar([[away], [near], [nearer]], old) == 2
    assert most_similar([[near], [near]], old) == 0


def test_similarity_is_averaged_over_learners() -> None:
    # the first learner prefers task 0 a little, the second prefers task 1 by far
    old = [np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]])]
    first, second = [[[1.0, 0.0]], [[-1.0, 0.0]]], [[[1.0, 0.1]], [[1.0, 0.0]]]
    assert most_similar([first, second], old) == 1


def test_similarity_needs_every_learner() -> None:
    with pytest.raises(ValueError, match="each learner"):
        most_similar([[[[1.0]]]], [[[1.0]], [[1.0]]])
    with pytest.raises(ValueError, match="each learner"):
        most_similar([], [[[1.0]]])
