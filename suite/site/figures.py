"""How numbers, times and hyperparameters are written: the one place where anything is rounded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from suite.metrics import Summary
from suite.protocol.space import Choice, Dimension, Int, LogUniform, Uniform, Value

NONE = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"

_BYTES = ("B", "kB", "MB", "GB", "TB")
_COUNTS = ("", "k", "M", "G", "T")


def percent(fraction: float | None) -> str:
    """A fraction as a percentage with one decimal, without the sign %."""
    return NONE if fraction is None else _minus(f"{_rounded(fraction):.1f}")


def points(difference: float | None) -> str:
    """A difference of fractions in percentage points, always signed."""
    return NONE if difference is None else _minus(f"{_rounded(difference):+.1f}")


def mean_std(summary: Summary | None) -> str:
    """Mean ± standard deviation in percent; the mean alone for a single seed."""
    if summary is None:
        return NONE
    return percent(summary.mean) if summary.std is None else f"{percent(summary.mean)} ± {percent(summary.std)}"


def seconds(value: float | None) -> str:
    """A duration in the unit that suits it."""
    if value is None:
        return NONE
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def byte_count(value: float | None) -> str:
    """Bytes in decimal units, three significant digits."""
    return NONE if value is None else _scaled(value, _BYTES, " ")


def count(value: float | None) -> str:
    """A number of things: exact below ten thousand, three significant digits beyond."""
    if value is None:
        return NONE
    if abs(value) < 10_000:
        return _minus(f"{value:.0f}" if value == round(value) else f"{value:.1f}")
    return _scaled(value, _COUNTS, " ")


def number(value: float | None) -> str:
    """Any other number, four significant digits."""
    return NONE if value is None else _minus(f"{value:.4g}")


def place(rank: int | None) -> str:
    """A place in a ranking."""
    return NONE if rank is None else str(rank)


def change(places: int | None) -> str:
    """Places won (▲) or lost (▼)."""
    if places is None:
        return NONE
    return "=" if places == 0 else f"{'▲' if places > 0 else '▼'} {abs(places)}"


def moment(when: datetime | None) -> str:
    """A time, in UTC."""
    return NONE if when is None else when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def day(when: datetime | None) -> str:
    """A date, in UTC."""
    return NONE if when is None else when.astimezone(UTC).strftime("%Y-%m-%d")


def value(given: Value) -> str:
    """One hyperparameter's value, as JSON writes it, strings without quotes."""
    return given if isinstance(given, str) else json.dumps(given)


def point(given: Mapping[str, Value]) -> str:
    """Hyperparameters in one line."""
    return ", ".join(f"{name} = {value(v)}" for name, v in given.items()) or "none"


def dimension(given: Dimension) -> str:
    """The range of a hyperparameter in words."""
    if isinstance(given, Choice):
        text = ", ".join(value(v) for v in given.values)
    elif isinstance(given, Uniform | LogUniform | Int):
        low, high = number(given.low), number(given.high)
        kind = {"uniform": "", "log_uniform": ", log-uniform", "int": ", integer"}[given.kind]
        text = f"{low} to {high}{kind}"
    conditions = [f"{name} is {' or '.join(value(v) for v in values)}" for name, values in given.when.items()]
    return f"{text} (if {' and '.join(conditions)})" if conditions else text


def _scaled(value: float, units: tuple[str, ...], space: str) -> str:
    step = 0
    while abs(value) >= 999.5 and step < len(units) - 1:
        value, step = value / 1000, step + 1
    digits = 0 if step == 0 else max(0, 2 - len(str(int(abs(value)))) + 1)
    return _minus(f"{value:.{digits}f}") + (f"{space}{units[step]}" if units[step] else "")


def _rounded(fraction: float) -> float:
    """In percent, to one decimal, without a negative zero."""
    return round(100 * fraction, 1) + 0.0


def _minus(text: str) -> str:
    return text.replace("-", MINUS)
