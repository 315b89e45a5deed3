"""Hyperparameter spaces: draws lie in them, conditions decide what exists, JSON carries them unchanged."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from suite.protocol import Choice, Int, LogUniform, Point, Space, SpaceError, Uniform
from suite.protocol.space import same

VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
UNIT = st.floats(0, 1, exclude_max=True)


def ordered(numbers: st.SearchStrategy[Any], least: float = 0.0) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair)))


DIMENSIONS = st.one_of(
    st.lists(VALUES, min_size=1, max_size=5).map(Choice),
    ordered(st.floats(-1e300, 1e300)).map(lambda p: Uniform(*p)),
    ordered(st.floats(1e-300, 1e300)).map(lambda p: LogUniform(*p)),
    ordered(st.integers(-(2**53), 2**53)).map(lambda p: Int(*p)),
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Spaces whose dimensions may hang on a value that an earlier choice may take."""
    dimensions: dict[str, Any] = {}
    for name in draw(st.lists(NAMES, unique=True, max_size=5)):
        dimension = draw(DIMENSIONS)
        choices = [n for n, d in dimensions.items() if isinstance(d, Choice)]
        if draw(st.booleans()) and choices:
            on = draw(st.sampled_from(choices))
            dimension = dimension.model_copy(update={"when": {on: [draw(st.sampled_from(dimensions[on].values))]}})
        dimensions[name] = dimension
    return Space(dimensions)


def source(units: list[float]) -> Callable[[], float]:
    return iter(units).__next__


@given(spaces(), st.lists(UNIT, min_size=5, max_size=5))
def test_every_draw_lies_in_its_space(space: Space, units: list[float]) -> None:
    point = space.draw(source(units))
    space.check(point)
    space.check_names(point)
    assert list(point) == [name for name in space.root if name in point]


@given(spaces())
def test_json_carries_a_space_unchanged_and_in_order(space: Space) -> None:
    again = Space.model_validate_json(space.model_dump_json())
    assert again == space
    assert list(again.root) == list(space.root)
    assert again.model_dump_json() == space.model_dump_json()


@given(spaces(), st.lists(UNIT, min_size=5, max_size=5))
def test_json_carries_draws_unchanged(space: Space, units: list[float]) -> None:
    assert Space.model_validate_json(space.model_dump_json()).draw(source(units)) == space.draw(source(units))


@given(ordered(st.integers(-(2**53), 2**53)), UNIT)
def test_integers_are_drawn_inside_their_bounds(bounds: tuple[int, int], u: float) -> None:
    value = Int(*bounds).at(u)
    assert type(value) is int
    assert bounds[0] <= value <= bounds[1]


LAST = math.nextafter(1.0, 0.0)


def test_the_ends_of_the_unit_interval_reach_the_ends_of_a_range() -> None:
    assert [Int(1, 3).at(u) for u in (0.0, 0.34, 0.67, LAST)] == [1, 2, 3, 3]
    assert [Choice(["a", "b"]).at(u) for u in (0.0, 0.5, LAST)] == ["a", "b", "b"]
    assert (Uniform(2.0, 4.0).at(0.0), Uniform(2.0, 4.0).at(0.5)) == (2.0, 3.0)
    assert LogUniform(0.01, 1.0).at(0.0) == pytest.approx(0.01)
    assert LogUniform(0.01, 1.0).at(0.5) == pytest.approx(0.1)


def test_a_log_uniform_draw_is_uniform_in_its_logarithm() -> None:
    rng = random.Random(0)
    draws = [math.log10(LogUniform(1e-4, 1.0).at(rng.random())) for _ in range(4000)]  # type: ignore[arg-type]
    counts = [sum(-4 + k <= d < -3 + k for d in draws) for k in range(4)]
    assert all(abs(c - 1000) < 120 for c in counts)  # four standard deviations


# --- conditions -------------------------------------------------------------------------------------------------------

CONDITIONAL = Space(
    scheduler=Choice(["step", "cosine", None]),
    milestones=Int(2, 4, when={"scheduler": ["step"]}),
    decay=Uniform(0.1, 0.5, when={"milestones": [2, 3]}),
    warm=Choice([True, False], when={"scheduler": [None]}),
)


def test_a_hyperparameter_exists_only_under_its_condition() -> None:
    assert CONDITIONAL.draw(source([0.0, 0.0, 0.0])) == {"scheduler": "step", "milestones": 2, "decay": 0.1}
    assert CONDITIONAL.draw(source([0.0, 0.99])) == {"scheduler": "step", "milestones": 4}
    assert CONDITIONAL.draw(source([0.5])) == {"scheduler": "cosine"}
    assert CONDITIONAL.draw(source([0.9, 0.0])) == {"scheduler": None, "warm": True}


def test_a_hyperparameter_that_does_not_exist_is_not_none() -> None:
    space = Space(a=Choice([1, 2]), b=Choice([None], when={"a": [1]}), c=Choice([0], when={"b": [None]}))
    assert space.draw(source([0.0, 0.0, 0.0])) == {"a": 1, "b": None, "c": 0}
    assert space.draw(source([0.5])) == {"a": 2}


def test_all_conditions_must_hold() -> None:
    space = Space(a=Choice([1, 2]), b=Choice([1, 2]), c=Choice([0], when={"a": [1], "b": [1]}))
    assert "c" in space.draw(source([0.0, 0.0, 0.0]))
    assert "c" not in space.draw(source([0.0, 0.5]))


def test_a_condition_tells_true_from_one() -> None:
    space = Space(flag=Choice([1, True]), x=Choice([0], when={"flag": [True]}))
    assert space.draw(source([0.0])) == {"flag": 1}
    assert space.draw(source([0.5, 0.0])) == {"flag": True, "x": 0}


def test_a_condition_may_only_look_back() -> None:
    for wrong in ({"b": [1]}, {"a": [1]}, {"nowhere": [1]}):
        with pytest.raises(ValidationError, match="must come before it"):
            Space(a=Choice([1], when=wrong), b=Choice([1]))


# --- points that users give -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "complaint"),
    [
        ({"scheduler": "cosine", "lr": 1}, "lr is not a hyperparameter"),
        ({}, "scheduler is missing"),
        ({"scheduler": "step"}, "milestones is missing"),
        ({"scheduler": "cosine", "milestones": 2}, "milestones does not apply here"),
        ({"scheduler": "linear"}, "scheduler = 'linear' lies outside its range"),
        ({"scheduler": "step", "milestones": 5}, "milestones = 5 lies outside its range"),
        ({"scheduler": "step", "milestones": 4.0}, "milestones = 4.0 lies outside its range"),
        ({"scheduler": None, "warm": 1}, "warm = 1 lies outside its range"),
        ({"scheduler": "step", "milestones": 2, "decay": True}, "decay = True lies outside its range"),
        ({"scheduler": "step", "milestones": 2, "decay": "0.2"}, "decay = '0.2' lies outside its range"),
    ],
)
def test_check_says_what_does_not_fit(point: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SpaceError) as caught:
        CONDITIONAL.check(point)
    assert complaint in caught.value.message
    assert caught.value.remedy


def test_check_names_lets_values_outside_the_sets_through_but_no_other_names() -> None:
    CONDITIONAL.check_names({"scheduler": "linear"})
    CONDITIONAL.check_names({"scheduler": "step", "milestones": 9})
    points: list[Point] = [{"scheduler": "linear", "warm": True}, {"scheduler": "step"}, {"schedule": "step"}]
    for point in points:
        with pytest.raises(SpaceError):
            CONDITIONAL.check_names(point)


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(SpaceError) as caught:
        CONDITIONAL.check({"scheduler": "linear", "other": 1})
    assert "scheduler" in caught.value.message
    assert "other" in caught.value.message


# --- replacing ranges -------------------------------------------------------------------------------------------------


def test_a_track_replaces_ranges_and_leaves_conditions_order_and_the_original() -> None:
    before = CONDITIONAL.model_dump_json()
    changed = CONDITIONAL.replaced({"milestones": Choice([7]), "unknown": Choice([1])})
    assert list(changed.root) == list(CONDITIONAL.root)
    assert changed.draw(source([0.0, 0.0])) == {"scheduler": "step", "milestones": 7}
    assert changed.draw(source([0.5])) == {"scheduler": "cosine"}
    assert CONDITIONAL.model_dump_json() == before


# --- what is no space -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: Choice([]),
        lambda: Choice("abc"),
        lambda: Choice([float("nan")]),
        lambda: Choice([float("inf")]),
        lambda: Choice([[1]]),  # type: ignore[list-item]
        lambda: Choice(range(257)),
        lambda: Choice(["x" * 2001]),
        lambda: Uniform(1, 0),
        lambda: Uniform(1),
        lambda: Uniform(0, float("inf")),
        lambda: Uniform(-1.7e308, 1.7e308),
        lambda: LogUniform(0, 1),
        lambda: LogUniform(-1, 1),
        lambda: Int(1.5, 3),  # type: ignore[arg-type]
        lambda: Int(0, 2**54),
        lambda: Space({"Name": Choice([1])}),
        lambda: Space({"a b": Choice([1])}),
        lambda: Space({"a\n": Choice([1])}),
        lambda: Space({f"a{i}": Choice([1]) for i in range(65)}),
        lambda: Space({"a": {"kind": "normal", "mean": 0}}),
        lambda: Space({"a": {"kind": "choice", "values": [1], "weights": [1]}}),
    ],
)
def test_a_malformed_space_is_refused(make: Callable[[], Space]) -> None:
    with pytest.raises(ValidationError):
        make()


@given(VALUES, VALUES)
def test_values_are_the_same_as_json_has_them(a: Any, b: Any) -> None:
    assert same(a, a)
    assert same(a, b) == same(b, a)
    assert not same(True, 1)
    assert not same(0, False)
    assert same(1, 1.0)
