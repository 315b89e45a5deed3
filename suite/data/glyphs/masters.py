"""The shipped masters: one 1-bit picture per glyph, and how alike two of them are."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suite.errors import DataError

CANVAS = 96  # pixels of a side of a master; the ink fits 80
THRESHOLD = 0.06  # two glyphs nearer than this are taken for the same
_CELL = 4  # pixels averaged for a comparison


@dataclass(frozen=True)
class Index:
    """What is shipped: scripts with their code points, and the named sets of classes (`script/U+code`)."""

    version: int
    licence: str
    scripts: dict[str, tuple[str, ...]]  # class names of each script
    kinds: dict[str, str]  # 'alphabet', 'other', 'pretrain' or 'symbol'
    sets: dict[str, tuple[str, ...]]
    dropped: tuple[tuple[str, str, float], ...]  # (glyph, the class it looks like, distance)


def _resource(name: str) -> Any:
    return files("suite.data.glyphs").joinpath(name)


@functools.cache
def load_index() -> Index:
    """The index, read once."""
    raw = json.loads(_resource("index.json").read_text(encoding="utf-8"))
    scripts = {s: tuple(f"{s}/U+{code:04X}" for code in entry["codes"]) for s, entry in raw["scripts"].items()}
    return Index(
        version=raw["version"],
        licence=raw["licence"],
        scripts=scripts,
        kinds={s: entry["kind"] for s, entry in raw["scripts"].items()},
        sets={name: tuple(classes) for name, classes in raw["sets"].items()},
        dropped=tuple((a, b, d) for a, b, d in raw["dropped"]),
    )


def load_masters(names: Sequence[str]) -> NDArray[np.uint8]:
    """Masters of the classes `names`, 0 or 1, uint8 [n, 96, 96]. Raises DataError for an unknown class."""
    index = load_index()
    wanted: dict[str, list[tuple[int, int]]] = {}
    for row, name in enumerate(names):
        script = name.partition("/")[0]
        if name not in index.scripts.get(script, ()):
            raise DataError(f"No glyph is called {name!r}.", "Glyphs are called 'script/U+code', e.g. 'greek/U+03B1'.")
        wanted.setdefault(script, []).append((row, index.scripts[script].index(name)))
    result = np.zeros((len(names), CANVAS, CANVAS), np.uint8)
    with _resource("masters.npz").open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        for script, pairs in wanted.items():
            rows, places = zip(*pairs, strict=True)
            bits = np.unpackbits(archive[script][list(places)], axis=1)
            result[list(rows)] = bits.reshape(-1, CANVAS, CANVAS)
    return result


def blurred(masters: NDArray[np.uint8]) -> NDArray[np.float32]:
    """What two masters are compared by: means of 4x4 pixels, then of 3x3 such cells; float32 [n, 24 * 24]."""
    side = CANVAS // _CELL
    cells = masters.reshape(-1, side, _CELL, side, _CELL).mean(axis=(2, 4), dtype=np.float32)
    padded = np.pad(cells, ((0, 0), (1, 1), (1, 1)))
    smooth = np.zeros_like(cells)
    for i in range(3):
        for j in range(3):
            smooth += padded[:, i : i + side, j : j + side]
    return np.asarray(smooth.reshape(len(masters), -1), np.float32)


def distances(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    """Pairwise |a - b|^2 / (|a|^2 + |b|^2) of blurred masters, [n, m]: 0 for equal glyphs, 1 without common ink."""
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None]
    return np.asarray(np.maximum(0, 1 - 2 * (first @ second.T) / squares), np.float32)
