"""Averages over seeds, choice of a draw, and the paper's memory footprint."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.metrics import Summary, best_draw, harmonic_mean, memory_b4, selection_score, summarise

fractions = st.floats(0, 1)


@given(st.lists(fractions, min_size=2, max_size=8))
def test_summary_agrees_with_the_standard_library(values: list[float]) -> None:
    summary = summarise(values)
    assert summary.mean == pytest.approx(statistics.fmean(values))
    assert summary.std == pytest.approx(statistics.stdev(values), abs=1e-9)
    assert summary.n == len(values)


def test_one_seed_has_no_standard_deviation() -> None:
    assert summarise([0.25]) == Summary(0.25, None, 1)


@pytest.mark.parametrize("values", [[], [0.1, math.nan], [math.inf]])
def test_nothing_and_non_finite_values_cannot_be_summarised(values: list[float]) -> None:
    with pytest.raises(ValueError):
        summarise(values)


@pytest.mark.parametrize(("a", "b", "expected"), [(0.5, 1.0, 2 / 3), (0.0, 0.9, 0.0), (0.0, 0.0, 0.0), (0.3, 0.3, 0.3)])
def test_harmonic_mean(a: float, b: float, expected: float) -> None:
    assert harmonic_mean(a, b) == pytest.approx(expected)


@given(fractions, fractions)
def test_harmonic_mean_lies_between_its_arguments(a: float, b: float) -> None:
    value = harmonic_mean(a, b)
    assert min(a, b) * (1 - 1e-12) <= value <= max(a, b) * (1 + 1e-12)


@pytest.mark.parametrize("pair", [(-0.1, 0.5), (math.nan, 0.5)])
def test_harmonic_mean_refuses_what_it_is_not_defined_for(pair: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="non-negative"):
        harmonic_mean(*pair)


def test_selection_averages_over_seeds_before_the_harmonic_mean() -> None:
    # means 0.5 and 0.8: 0.8 / 1.3; the mean of the per-seed harmonic means (0.3429 and 0.8) would be 0.5714
    assert selection_score([0.2, 0.8], [0.8, 0.8]) == pytest.approx(0.8 / 1.3)


def test_the_earlier_draw_wins_a_tie_and_failed_draws_are_not_eligible() -> None:
    assert best_draw([None, 0.4, 0.6, 0.6, 0.1]) == 2
    assert best_draw([0.0]) == 0
    assert best_draw([None, None]) is None
    assert best_draw([]) is None


def test_memory_counts_four_bytes_a_number_and_a_raw_image() -> None:
    assert memory_b4(0, 0) == 0
    assert memory_b4(1_000, 0) == 4_000
    assert memory_b4(0, 1) == 150_528
    # a second ViT-B/16 and 2,000 stored images: 344 MB and 301 MB
    assert memory_b4(86_000_000, 2_000) == 344_000_000 + 301_056_000


@pytest.mark.parametrize("pair", [(-1, 0), (0, -1)])
def test_memory_refuses_negative_numbers(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="negative"):
        memory_b4(*pair)
