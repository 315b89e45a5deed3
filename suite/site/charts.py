"""Charts as inline SVG, drawn by pygal when the site is built.

pygal's own style sheet, script and time stamp are taken out: the site's style sheet colours the charts (light and
dark), each point says its value in a `<title>`, and the same results give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET  # only writes what pygal made

from markupsafe import Markup

from suite.metrics import Summary
from suite.site import figures
from suite.site.text import clean
from suite.store import Board, EntrySummary, SetSummary

if TYPE_CHECKING:
    from pygal import Config

MOST_LINES = 8
"""Lines that can still be told apart."""

_SVG = "http://www.w3.org/2000/svg"
_NAME = 40


@dataclass(frozen=True)
class Chart:
    """An SVG and what it shows in words."""

    svg: Markup
    caption: str


def accuracy_curves(results: Sequence[tuple[str, SetSummary]], caption: str) -> Chart | None:
    """Acc_t over tasks, one line per (label, set) with the standard deviation over seeds; None if there is none."""
    import pygal

    lines = [(label, result.tasks) for label, result in results if result.tasks][:MOST_LINES]
    if not lines:
        return None
    length = max(len(tasks) for _, tasks in lines)
    bottom, top = _range([t.acc for _, tasks in lines for t in tasks])
    config = _config(
        pygal,
        height=330 + 21 * ((len(lines) + 1) // 2),
        range=(bottom, top),
        x_title="Tasks learned",
        y_title="Acc (%)",
        dots_size=4,
    )
    chart = pygal.Line(config)
    chart.x_labels = [str(t + 1) for t in range(length)]
    chart.y_labels = list(range(bottom, top + 1, 10))
    for label, tasks in lines:
        chart.add(clean(label, _NAME), [_point(t.acc, f"after task {t.task + 1}") for t in tasks])
    return Chart(_svg(chart, caption), caption)


def phase_dots(board: Board, title: Callable[[str], str]) -> Chart | None:
    """Acc while tuned and while evaluated, one row per entry; None if no entry has both.

    `title` gives the name of a submission by its slug.
    """
    import pygal

    entries = [
        s.summary
        for s in board.standings
        if s.summary.tuning and s.summary.tuning.acc and any(r.acc for r in s.summary.evaluation)
    ]
    if not entries:
        return None
    rows = list(enumerate(reversed(entries), start=1))
    names = {e.run: clean(title(e.info.lock.submission), _NAME) for e in entries}
    caption = "Acc of each submission while tuned and on the evaluation sets: a line shows how far they lie apart."
    config = _config(
        pygal,
        height=120 + 32 * len(rows),
        xrange=(0, 100),
        range=(0.5, len(rows) + 0.5),
        x_title="Acc (%)",
        dots_size=6,
        stroke=False,
        show_y_guides=False,
        show_x_guides=True,
    )
    chart = pygal.XY(config)
    chart.x_labels = list(range(0, 101, 20))
    chart.y_labels = [{"label": names[e.run], "value": y} for y, e in rows]
    tuning = f"tuning: {clean(board.track.tuning.data_set, _NAME)}"
    chart.add(tuning, [_dot(e.tuning.acc if e.tuning else None, y, names[e.run]) for y, e in rows])
    for i, part in enumerate(board.track.evaluation):
        similarity = f" ({part.similarity})" if part.similarity else ""
        label = f"{clean(part.data_set, _NAME)}{similarity}"
        chart.add(label, [_dot(e.evaluation[i].acc, y, names[e.run]) for y, e in rows])
    dotted = 1 + len(board.track.evaluation)
    for y, entry in rows:
        chart.add(None, _span(entry, y), stroke=True, show_dots=False)
    return Chart(_svg(chart, caption, links_from=dotted), caption)


def _config(pygal: Any, **changes: Any) -> Config:
    return pygal.Config(
        **{
            "css": [],
            "js": [],
            "no_prefix": True,
            "width": 640,
            "show_legend": True,
            "legend_at_bottom": True,
            "legend_at_bottom_columns": 2,
            "truncate_legend": -1,
            "truncate_label": -1,
            "margin": 8,
            "value_formatter": lambda v: f"{v:g}",
            "x_value_formatter": lambda v: f"{v:g}",
        }
        | changes
    )


def _point(summary: Summary, where: str) -> dict[str, Any]:
    value = 100 * summary.mean
    point: dict[str, Any] = {"value": value, "label": f"{figures.mean_std(summary)} % {where}"}
    if summary.std:
        point["ci"] = {"low": value - 100 * summary.std, "high": value + 100 * summary.std}
    return point


def _range(summaries: Sequence[Summary]) -> tuple[int, int]:
    """The tens that hold every mean with its standard deviation, at least twenty points apart."""
    low = min(s.mean - (s.std or 0) for s in summaries)
    high = max(s.mean + (s.std or 0) for s in summaries)
    bottom = max(0, math.floor(10 * low) * 10)
    return min(bottom, 80), min(100, max(math.ceil(10 * high) * 10, bottom + 20))


def _dot(summary: Summary | None, y: int, name: str) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {"value": (100 * summary.mean, y), "label": f"{name}: {figures.mean_std(summary)} %"}


def _span(entry: EntrySummary, y: int) -> list[tuple[float, int]]:
    summaries = [entry.tuning.acc if entry.tuning else None, *(r.acc for r in entry.evaluation)]
    values = [100 * s.mean for s in summaries if s is not None]
    return [(min(values), y), (max(values), y)]


def _svg(chart: Any, caption: str, links_from: int | None = None) -> Markup:
    """The chart as an SVG element that carries no style, script or date of its own."""
    root = chart.render_tree()
    for parent in list(root.iter()):
        for child in list(parent):
            if not isinstance(child.tag, str) or _tag(child) in {"defs", "script", "style"} or _is_overlay(child):
                parent.remove(child)
        for unused in ("id", "style"):
            parent.attrib.pop(unused, None)
    root.set("role", "img")
    root.set("aria-label", caption)
    root.set("class", "chart")
    _drop_texts_for_scripts(root)
    _shorten(root.iter())
    _fit(root)
    if links_from is not None:
        _mark_links(root, links_from)
    ET.register_namespace("", _SVG)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704  it escapes every text


def _is_overlay(element: Any) -> bool:
    """What pygal's script would fill: tooltips and printed values."""
    return bool({"tooltip-overlay", "text-overlay"} & set((element.get("class") or "").split()))


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _drop_texts_for_scripts(root: Any) -> None:
    """pygal leaves value, label and position of a point to its script: keep the label, as the point's title."""
    for parent in list(root.iter()):
        labels = [c for c in parent if _tag(c) == "desc" and c.get("class") == "label"]
        for child in list(parent):
            if _tag(child) == "desc" or (_tag(child) == "title" and parent is root):
                parent.remove(child)
        for label in labels:
            title = parent.makeelement(parent.tag.replace(_tag(parent), "title"), {})
            title.text = label.text
            parent.insert(0, title)


def _shorten(elements: Iterable[Any]) -> None:
    """Coordinates to a tenth of a pixel: half the size, no visible change."""
    for element in elements:
        for name in ("x", "y", "cx", "cy", "width", "height", "d", "transform", "x1", "x2", "y1", "y2"):
            if (text := element.get(name)) is not None:
                element.set(name, " ".join(_short(part) for part in text.split(" ")))


def _short(part: str) -> str:
    head = part[:1] if part[:1].isalpha() else ""
    try:
        return f"{head}{round(float(part[len(head) :]), 1):g}"
    except ValueError:
        return part


def _fit(root: Any) -> None:
    """Let the picture end below its legend: pygal counts lines without a title, and rounds its rows down."""
    for group in root.iter():
        if group.get("class") == "legends":
            top = float(group.get("transform").rstrip(")").replace(",", " ").split()[-1])
            rows = [float(square.get("y")) for square in group.iter() if _tag(square) == "rect"]
            width = root.get("viewBox").split()[2]
            root.set("viewBox", f"0 0 {width} {top + max(rows) + 24:g}")


def _mark_links(root: Any, first: int) -> None:
    """Series from number `first` on are the lines between dots."""
    for element in root.iter():
        names = (element.get("class") or "").split()
        numbers = [int(n.removeprefix("serie-")) for n in names if n.startswith("serie-")]
        if numbers and numbers[0] >= first:
            element.set("class", f"{' '.join(names)} link")
