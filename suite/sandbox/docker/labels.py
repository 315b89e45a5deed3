"""How the suite marks what it makes in an engine, and knows it again.

An image's labels become its containers' labels, so a mark alone proves nothing: a container of ours also bears the
name that belongs to its mark, and names cannot be set by an image.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

CELL_LABEL = "continual-suite.cell"
"""Token of the cell."""

RUN_LABELS = "continual-suite.labels"
"""The launch's labels as JSON."""


def labels_of(token: str, labels: Mapping[str, str]) -> dict[str, str]:
    """The marks of a cell's container and volumes."""
    return {CELL_LABEL: token, RUN_LABELS: json.dumps(dict(labels), sort_keys=True)}


def run_labels(marks: Mapping[str, Any] | None) -> dict[str, str] | None:
    """The launch's labels in the marks of a thing; None when it was not made by the suite."""
    if not marks or CELL_LABEL not in marks:
        return None
    try:
        labels = json.loads(marks.get(RUN_LABELS, ""))
    except ValueError:
        return None
    return {str(k): str(v) for k, v in labels.items()} if isinstance(labels, dict) else None
