"""Rank correlations against scipy and against the table that the CLDyB paper published."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from suite.metrics import (
    average_ranks,
    bootstrap_interval,
    competition_ranks,
    correlate,
    kendall,
    p_value,
    spearman,
)
from suite.metrics.ranks import Method

# Final average accuracy (%) as published in the CLDyB paper, tables 1 and 4; the first seven rows are those of table 1.
#            method        CIFAR-100 ImageNet-R  hard  medium  easy  heldout
PUBLISHED: dict[str, tuple[float | None, ...]] = {
    "RanPAC": (92.2, 78.1, 56.9, 62.2, 77.0, 81.0),
    "HiDe-Prompt": (92.6, 75.1, 62.5, 67.6, 80.1, 84.9),
    "DualPrompt": (86.5, 68.1, 41.9, 53.7, 69.0, 70.8),
    "PGP": (86.9, 69.3, 44.0, 52.0, 69.2, 68.7),
    "LAE": (85.6, 72.7, 48.1, 50.9, 70.1, 71.1),
    "SLCA": (91.5, 77.0, 56.2, 59.7, 77.2, 80.3),
    "ER": (67.9, 55.1, 54.8, 60.5, 76.3, 79.9),
    "CLS-ER": (None, None, 57.0, 60.7, 75.4, 81.1),
    "AFEC": (None, None, 49.5, 51.9, 72.5, 76.3),
}
CIFAR, IMAGENET_R, HARD, MEDIUM, EASY, HELDOUT = range(6)

few_values = st.lists(st.integers(-3, 3), min_size=2, max_size=12)
paired = st.integers(2, 12).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-4, 4), min_size=n, max_size=n) for _ in range(2)])
)


def column(index: int, methods: int) -> list[float]:
    values = [row[index] for row in list(PUBLISHED.values())[:methods]]
    return [value for value in values if value is not None]


@pytest.mark.parametrize(
    ("index", "methods", "rho", "tau", "significant"),
    [
        (HARD, 9, 0.983, 0.944, True),
        (MEDIUM, 9, 0.833, 0.667, True),
        (EASY, 9, 0.867, 0.722, True),
        (HARD, 7, 0.964, 0.905, True),
        (CIFAR, 7, 0.643, 0.429, False),
        (IMAGENET_R, 7, 0.643, 0.429, False),
    ],
)
def test_published_correlations_with_heldout_data_are_reproduced(
    index: int, methods: int, rho: float, tau: float, significant: bool
) -> None:
    x, y = column(index, methods), column(HELDOUT, methods)
    assert round(spearman(x, y), 3) == rho
    assert round(kendall(x, y), 3) == tau
    methods_of: tuple[Method, ...] = ("spearman", "kendall")
    for method in methods_of:
        assert (p_value(x, y, method, seed=0) < 0.05) is significant


@given(paired)
def test_statistics_agree_with_scipy_on_ties(pair: tuple[list[int], list[int]]) -> None:
    x, y = pair
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(spearman(x, y))
        assert math.isnan(kendall(x, y))
        return
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert kendall(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


@given(few_values)
def test_average_ranks_agree_with_scipy(values: list[int]) -> None:
    np.testing.assert_allclose(average_ranks(values), stats.rankdata(values))


@given(paired)
def test_correlation_is_symmetric_and_changes_sign_with_order(pair: tuple[list[int], list[int]]) -> None:
    x, y = pair
    for statistic in (spearman, kendall):
        value = statistic(x, y)
        if math.isnan(value):
            continue
        assert statistic(y, x) == pytest.approx(value)
        assert statistic(x, [-v for v in y]) == pytest.approx(-value)
        assert statistic([v**3 + v for v in x], y) == pytest.approx(value)


@pytest.mark.parametrize("seed", range(3))
def test_exact_kendall_p_agrees_with_scipy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    x, y = generator.permutation(7), generator.permutation(7)
    expected = stats.kendalltau(x, y, method="exact").pvalue
    assert p_value(x, y, "kendall", seed=0) == pytest.approx(expected)


def test_exact_spearman_p_counts_all_pairings() -> None:
    x, y = [1, 2, 3, 4, 5], [2, 1, 2, 5, 3]
    observed = abs(spearman(x, y))
    values = [abs(spearman(x, p)) for p in itertools.permutations(y)]
    expected = sum(v >= observed - 1e-12 for v in values) / math.factorial(5)
    assert p_value(x, y, "spearman", seed=0) == pytest.approx(expected)


def test_random_permutations_approach_the_asymptotic_p() -> None:
    generator = np.random.default_rng(3)
    x = generator.normal(size=30)
    y = 0.3 * x + generator.normal(size=30)
    assert p_value(x, y, "spearman", seed=1) == pytest.approx(stats.spearmanr(x, y).pvalue, abs=0.02)
    assert p_value(x, y, "kendall", seed=1) == pytest.approx(stats.kendalltau(x, y).pvalue, abs=0.02)


def test_a_random_p_is_never_zero_and_follows_its_seed() -> None:
    x = list(range(12))
    assert p_value(x, x, "spearman", seed=0, permutations=999) == pytest.approx(1 / 1000)
    y = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7, 11, 10]
    first = p_value(x, y, "kendall", seed=5, permutations=99)
    assert first == p_value(x, y, "kendall", seed=5, permutations=99)


def test_an_exact_p_does_not_depend_on_the_seed() -> None:
    x, y = [1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5]
    assert p_value(x, y, "kendall", seed=0) == p_value(x, y, "kendall", seed=1)


def test_nine_pairs_are_enumerated_quickly() -> None:
    start = time.perf_counter()
    p_value(column(HARD, 9), column(HELDOUT, 9), "kendall", seed=0)
    assert time.perf_counter() - start < 10


def test_bootstrap_interval_is_seeded_and_holds_the_statistic() -> None:
    x, y = column(MEDIUM, 9), column(HELDOUT, 9)
    low, high = bootstrap_interval(x, y, "spearman", seed=0, resamples=500)
    assert -1 <= low < spearman(x, y) < high <= 1
    assert (low, high) == bootstrap_interval(x, y, "spearman", seed=0, resamples=500)
    assert (low, high) != bootstrap_interval(x, y, "spearman", seed=1, resamples=500)


def test_random_streams_are_pinned() -> None:
    # golden values: they change only when the stream of random numbers does
    x, y = range(1, 8), [1, 3, 2, 5, 4, 7, 6]
    interval = bootstrap_interval(x, y, "kendall", seed=7, level=0.8, resamples=50)
    assert interval == pytest.approx((9 / 19, 0.905263157894737))
    shuffled = [2, 1, 4, 3, 6, 0, 5, 9, 8, 7]
    assert p_value(range(10), shuffled, "spearman", seed=7, permutations=500) == pytest.approx(13 / 501)


def test_a_wider_level_gives_a_wider_interval() -> None:
    x, y = column(EASY, 9), column(HELDOUT, 9)
    narrow = bootstrap_interval(x, y, "kendall", seed=0, level=0.5, resamples=300)
    wide = bootstrap_interval(x, y, "kendall", seed=0, level=0.95, resamples=300)
    assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]


def test_a_constant_side_has_no_correlation() -> None:
    result = correlate([1, 1, 1], [1, 2, 3], "spearman", seed=0)
    assert math.isnan(result.statistic)
    assert math.isnan(result.p_value)
    assert math.isnan(result.low)


def test_correlate_gathers_statistic_p_and_interval() -> None:
    x, y = [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]
    result = correlate(x, y, "kendall", seed=0)
    assert (result.statistic, result.n, result.high) == (1.0, 4, 1.0)
    assert result.p_value == pytest.approx(2 / 24)


def test_equal_scores_share_a_place_and_the_next_is_skipped() -> None:
    assert competition_ranks([0.5, 0.9, None, 0.5, 0.1]) == [2, 1, None, 2, 4]


@given(st.lists(st.one_of(st.none(), st.integers(0, 4).map(float)), max_size=10))
def test_places_agree_with_scipy(scores: list[float | None]) -> None:
    present = [s for s in scores if s is not None]
    expected = iter(stats.rankdata([-s for s in present], method="min").astype(int).tolist() if present else [])
    assert competition_ranks(scores) == [None if s is None else next(expected) for s in scores]


@pytest.mark.parametrize(("x", "y"), [([1], [1]), ([1, 2], [1, 2, 3]), ([1, math.nan], [1, 2]), ([[1, 2]], [[1, 2]])])
def test_pairs_must_match(x: Any, y: Any) -> None:
    with pytest.raises(ValueError, match="vector"):
        spearman(x, y)


@settings(max_examples=20)
@given(st.sampled_from([0.0, 1.0, -0.5]))
def test_levels_outside_the_unit_interval_are_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        bootstrap_interval([1, 2], [1, 2], "kendall", seed=0, level=level)


def test_a_nan_score_has_no_place() -> None:
    with pytest.raises(ValueError, match="NaN"):
        competition_ranks([math.nan])


def test_no_permutations_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one permutation"):
        p_value(range(12), range(12), "kendall", seed=0, permutations=0)
