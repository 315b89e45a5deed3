"""Where prepared data sets and archives lie."""

from __future__ import annotations

import os
from pathlib import Path

DATA_VARIABLE = "SUITE_DATA"
ARCHIVES_VARIABLE = "SUITE_ARCHIVES"


def data_root(explicit: Path | None = None) -> Path:
    """The directory of prepared data sets: `--data`, else SUITE_DATA, else the user's cache."""
    if explicit is not None:
        return explicit
    if named := os.environ.get(DATA_VARIABLE):
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "continual-suite" / "data"


def archives_root() -> Path | None:
    """The directory of local archives named by SUITE_ARCHIVES, or None."""
    named = os.environ.get(ARCHIVES_VARIABLE)
    return Path(named) if named else None


def directory_of(root: Path, name: str) -> Path:
    """The directory of data set `name`: flat, so that `glyphs` and `glyphs/greek` do not nest."""
    return root / name.replace("/", "--")
