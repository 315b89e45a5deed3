"""Tables as data: one definition gives the HTML table, its sort order, and its CSV and JSON downloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from suite.metrics import Summary
from suite.site import figures
from suite.site.text import clean
from suite.status import Status

Form: TypeAlias = Literal[
    "text", "code", "entry", "status", "place", "change", "percent", "points", "mean_std", "seconds", "bytes", "count",
    "number", "point", "yes",
]  # fmt: skip


@dataclass(frozen=True)
class Badge:
    """A short mark; `colour` is a CSS class suffix, `title` says more."""

    text: str
    colour: str = "grey"
    title: str = ""


@dataclass(frozen=True)
class Entry:
    """A cell that names something: a link to its page, and its marks."""

    text: str
    href: str = ""
    badges: tuple[Badge, ...] = ()


@dataclass(frozen=True)
class Column:
    """One column. `meaning` explains its title; `group` stands above neighbours that share it."""

    key: str
    title: str
    form: Form = "text"
    meaning: str = ""
    group: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it is aligned right and sorted by value."""
        return self.form not in {"text", "code", "entry", "status", "point", "yes"}


@dataclass(frozen=True)
class Table:
    """Rows hold raw values by column key; None is shown as a dash."""

    id: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[dict[str, Any]]
    note: str = ""
    marked: frozenset[int] = field(default_factory=frozenset)
    """Numbers of rows to stress."""
    is_sortable: bool = True

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Titles above the columns and how many each spans; empty if no column has one."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and spans[-1][0] == column.group:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans if any(title for title, _ in spans) else []

    def flat(self) -> tuple[list[str], list[list[Any]]]:
        """Header and rows for downloads: raw values, mean and standard deviation in columns of their own."""
        header = [name for c in self.columns for name in _names(c)]
        return header, [[v for c in self.columns for v in _plain(c, row.get(c.key))] for row in self.rows]


def _names(column: Column) -> list[str]:
    return [f"{column.key}_mean", f"{column.key}_std"] if column.form == "mean_std" else [column.key]


def _plain(column: Column, cell: Any) -> list[Any]:
    if column.form == "mean_std":
        return [cell.mean, cell.std] if isinstance(cell, Summary) else [None, None]
    if isinstance(cell, Entry):
        return [cell.text]
    return [cell.value if isinstance(cell, Status) else cell]


_WRITERS: dict[Form, Callable[[Any], str]] = {
    "place": figures.place,
    "change": figures.change,
    "percent": figures.percent,
    "points": figures.points,
    "mean_std": figures.mean_std,
    "seconds": figures.seconds,
    "bytes": figures.byte_count,
    "count": figures.count,
    "number": figures.number,
    "point": lambda point: clean(figures.point(point)),
}


def shown(column: Column, cell: Any) -> str:
    """A cell's text. A status may stand in any column: where a figure is missing because of it."""
    if isinstance(cell, Status):
        return cell.look.text
    if cell is None:
        return figures.NONE
    if column.form == "yes":
        return "yes" if cell else "no"
    return _WRITERS[column.form](cell) if column.form in _WRITERS else clean(str(cell))


def sort_key(column: Column, cell: Any) -> str:
    """What a numeric cell is sorted by; '' where there is nothing to sort."""
    raw = cell.mean if isinstance(cell, Summary) else cell
    return repr(float(raw)) if column.is_number and isinstance(raw, int | float) else ""
