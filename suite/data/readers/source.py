"""What a reader finds: classes with their counts, and a way to put their images into a writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from suite.data.dataset import Progress
from suite.data.writer import ClassPlan, Writer
from suite.errors import DataError
from suite.seeds import derive_seed, shuffled

SplitRule = Literal["seeded", "by_index"]
SplitOrigin = Literal["source", "seeded", "by_index"]
TEST_SHARE = 0.2


@dataclass(frozen=True)
class Source:
    """Classes in their final order, where their split comes from, and `fill(writer, resolution, progress)`."""

    classes: list[ClassPlan]
    split: SplitOrigin
    sha256: str | None  # of the archive; None for a tree of folders
    fill: Callable[[Writer, int, Progress], None]


def split_class(names: Sequence[str], rule: SplitRule, *axes: str) -> tuple[list[str], list[str]]:
    """Split the images of one class, sorted by name, into train and test: a fifth, at least one, is held out.

    `seeded` draws them by a shuffle that depends on `axes` only. `by_index` takes the last ones, for sources whose
    neighbours are near-duplicates (frames of one video). Raises DataError for a class of one image.
    """
    order = sorted(names)
    if len(order) < 2:
        raise DataError(f"Class {axes[-1]!r} has {len(order)} image(s).", "Give every class at least two images.")
    if rule == "seeded":
        order = shuffled(order, derive_seed("split", *axes))
    held_out = max(1, round(len(order) * TEST_SHARE))
    return sorted(order[:-held_out]), sorted(order[-held_out:])
