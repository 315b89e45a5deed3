"""Hyperparameter spaces: what a learner lets the harness draw (GTEP, algorithm 2, line 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

from suite.protocol.errors import SpaceError
from suite.protocol.limits import MAX_CHOICES, MAX_NAME, MAX_SPACE_DIMENSIONS, MAX_TEXT

Value: TypeAlias = (
    Annotated[bool, Field(strict=True)]
    | Annotated[int, Field(strict=True)]
    | Annotated[float, Field(strict=True, allow_inf_nan=False)]
    | Annotated[str, Field(max_length=MAX_TEXT, strict=True)]
    | None
)
Point: TypeAlias = dict[str, Value]
Condition: TypeAlias = dict[str, list[Value]]
HyperparameterName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=MAX_NAME)]


class _Dimension(BaseModel):
    """A hyperparameter; `when` says for which values of earlier ones it exists (all must hold)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    when: Condition = Field(default_factory=dict)

    def applies(self, point: Mapping[str, Value]) -> bool:
        return all(name in point and any(same(point[name], v) for v in values) for name, values in self.when.items())


class Choice(_Dimension):
    """One of a list of values, each as likely as the next."""

    kind: Literal["choice"] = "choice"
    values: list[Value] = Field(min_length=1, max_length=MAX_CHOICES)

    def __init__(self, values: Sequence[Value] | None = None, /, **data: Any) -> None:
        if values is not None:  # a lone string is a sequence too, but hardly meant as a list of letters
            data["values"] = values if isinstance(values, str) else list(values)
        super().__init__(**data)

    def at(self, u: float) -> Value:
        return self.values[int(u * len(self.values))]

    def holds(self, value: Value) -> bool:
        return any(same(value, v) for v in self.values)


class _Interval(_Dimension):
    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        if not math.isfinite(self.high - self.low):
            raise ValueError(f"from {self.low} to {self.high} is too far for a floating-point number")
        return self

    def holds(self, value: Value) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high


def _bounds(low: float | None, high: float | None, data: dict[str, Any]) -> dict[str, Any]:
    """Lets `Uniform(0, 1)` be written; each class has its own `__init__` because type checkers look for it there."""
    return {**({} if low is None else {"low": low}), **({} if high is None else {"high": high}), **data}


class Uniform(_Interval):
    """A real number, uniform between low and high."""

    kind: Literal["uniform"] = "uniform"

    def __init__(self, low: float | None = None, high: float | None = None, /, **data: Any) -> None:
        super().__init__(**_bounds(low, high, data))

    def at(self, u: float) -> Value:
        return min(self.low + u * (self.high - self.low), self.high)


class LogUniform(_Interval):
    """A positive real number whose logarithm is uniform."""

    kind: Literal["log_uniform"] = "log_uniform"

    def __init__(self, low: float | None = None, high: float | None = None, /, **data: Any) -> None:
        super().__init__(**_bounds(low, high, data))

    @model_validator(mode="after")
    def _positive(self) -> Self:
        if self.low <= 0:
            raise ValueError(f"low {self.low} has no logarithm; it must be above 0")
        return self

    def at(self, u: float) -> Value:
        value = math.exp(math.log(self.low) + u * (math.log(self.high) - math.log(self.low)))
        return min(max(value, self.low), self.high)


class Int(_Interval):
    """An integer, uniform from low to high, both included."""

    kind: Literal["int"] = "int"
    low: int = Field(ge=-(2**53), le=2**53)
    high: int = Field(ge=-(2**53), le=2**53)

    def __init__(self, low: int | None = None, high: int | None = None, /, **data: Any) -> None:
        super().__init__(**_bounds(low, high, data))

    def at(self, u: float) -> Value:
        return self.low + int(u * (self.high - self.low + 1))

    def holds(self, value: Value) -> bool:
        return isinstance(value, int) and super().holds(value)


Dimension: TypeAlias = Annotated[Choice | Uniform | LogUniform | Int, Field(discriminator="kind")]


class Space(RootModel[dict[HyperparameterName, Dimension]]):
    """Named hyperparameters in the order in which they are drawn.

    A condition may name only hyperparameters that come earlier, so one pass draws a point.
    """

    model_config = ConfigDict(frozen=True)
    root: dict[HyperparameterName, Dimension] = Field(default_factory=dict, max_length=MAX_SPACE_DIMENSIONS)

    def __init__(self, root: Mapping[str, Any] | None = None, /, **dimensions: Any) -> None:
        super().__init__(dict(root) if root is not None else dimensions)

    @model_validator(mode="after")
    def _conditions_look_back(self) -> Self:
        earlier: set[str] = set()
        for name, dimension in self.root.items():
            if late := set(dimension.when) - earlier:
                raise ValueError(f"{name}: its condition names {sorted(late)}, which must come before it in the space")
            earlier.add(name)
        return self

    def draw(self, unit: Callable[[], float]) -> Point:
        """A random point; `unit` yields uniform numbers in [0, 1), one for each hyperparameter that applies."""
        point: Point = {}
        for name, dimension in self.root.items():
            if dimension.applies(point):
                point[name] = dimension.at(unit())
        return point

    def check(self, point: Mapping[str, Value]) -> None:
        """Raise SpaceError unless `point` has exactly the hyperparameters that apply, each inside its range."""
        problems = self._misfits(point)
        for name, dimension in self.root.items():
            if name in point and not dimension.holds(point[name]):
                problems.append(f"{name} = {point[name]!r} lies outside its range")
        if problems:
            raise SpaceError(f"Not a point of the space: {'; '.join(problems)}.", "Compare with `suite check`.")

    def check_names(self, point: Mapping[str, Value]) -> None:
        """Raise SpaceError unless the names fit; values may lie outside the sets, as the papers' presets do."""
        if problems := self._misfits(point):
            raise SpaceError(f"Not a point of the space: {'; '.join(problems)}.", "Compare with `suite check`.")

    def _misfits(self, point: Mapping[str, Value]) -> list[str]:
        problems = [f"{name} is not a hyperparameter" for name in point if name not in self.root]
        for name, dimension in self.root.items():
            if (name in point) != dimension.applies(point):
                problems.append(f"{name} does not apply here" if name in point else f"{name} is missing")
        return problems

    def replaced(self, overrides: Mapping[str, Dimension]) -> Space:
        """This space with the ranges that a track replaces; names that the learner does not have are ignored."""
        changed = {
            name: overrides[name].model_copy(update={"when": d.when}) if name in overrides else d
            for name, d in self.root.items()
        }
        return Space(changed)


def same(a: Value, b: Value) -> bool:
    """Equality that keeps True apart from 1 (Python's == does not)."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)
