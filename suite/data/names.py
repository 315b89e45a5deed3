"""How data sets are called: `STEM[-1|-2][@RESOLUTION][:COUNT]`, e.g. `letters-1:50`, `archive/cifar100-2`, `digits@64`.

Parts of a data set are fixed once, by a sha256 shuffle of its sorted class names, and nothing else:
  `-1`, `-2`   the first and the second half (the first is the larger by one where the number is odd)
  `:COUNT`     the first COUNT classes of another such shuffle, so `letters-1:10` lies within `letters-1:50`
In either the classes keep the order they have in the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suite.errors import DataError
from suite.seeds import derive_seed, shuffled

RESOLUTIONS = (32, 64, 256)
_PATTERN = re.compile(r"(?P<stem>[A-Za-z0-9][\w./-]{0,120}?)(?:@(?P<resolution>\d{1,4}))?(?::(?P<count>\d{1,6}))?")
# the papers' names for halves, and the whole they are halves of
_HALVES = {"CIFAR-50": "CIFAR-100", "CUB-100": "CUB-200", "ImageNet-50": "ImageNet-100-1"}
_ALIASES = {"ImageNet-100": "ImageNet-100-1"}


@dataclass(frozen=True)
class Name:
    """A parsed name: the data set that is prepared, and the part of it that is meant."""

    text: str
    base: str
    half: int | None = None
    resolution: int | None = None
    count: int | None = None

    @property
    def prepared(self) -> str:
        """The name of what lies on disk: the part is a view of it."""
        return self.base if self.resolution is None else f"{self.base}@{self.resolution}"

    def part(self, class_names: Sequence[str]) -> list[int]:
        """Indices of the classes meant, ascending. Raises DataError when there are too few."""
        chosen = list(range(len(class_names)))
        if self.half is not None:
            order = _shuffle(chosen, class_names, "halves", self.base)
            middle = (len(order) + 1) // 2
            chosen = sorted(order[:middle] if self.half == 1 else order[middle:])
        if self.count is not None:
            if not 1 <= self.count <= len(chosen):
                raise DataError(
                    f"{self.text!r} asks for {self.count} of {len(chosen)} classes.",
                    f"Write a number from 1 to {len(chosen)} after the colon.",
                )
            axes = (self.base, self.half) if self.half is not None else (self.base,)
            chosen = sorted(_shuffle(chosen, class_names, "subset", *axes)[: self.count])
        return chosen


def _shuffle(indices: Sequence[int], class_names: Sequence[str], *axes: object) -> list[int]:
    return shuffled(sorted(indices, key=lambda i: class_names[i]), derive_seed(*axes))


def parse_name(text: str, known: Callable[[str], bool]) -> Name | None:
    """Read a name; `known` says which data sets there are. None when it means nothing. Raises DataError."""
    match = _PATTERN.fullmatch(text)
    if match is None or ".." in text:
        return None
    resolution = int(match["resolution"]) if match["resolution"] else None
    if resolution is not None and resolution not in RESOLUTIONS:
        raise DataError(f"{text!r} asks for {resolution} pixels.", f"Choose one of {RESOLUTIONS}.")
    count = int(match["count"]) if match["count"] else None
    stem = _ALIASES.get(match["stem"], match["stem"])
    if known(stem):
        return Name(text, stem, None, resolution, count)
    whole, dash, half = stem.rpartition("-")
    whole = _HALVES.get(whole, whole)
    if dash and half in ("1", "2") and known(whole):
        return Name(text, whole, int(half), resolution, count)
    return None


def common_names() -> list[str]:
    """The parts that have a name in the papers."""
    halves = [f"{stem}-{half}" for stem in (*_HALVES, "ImageNet-A", "ImageNet-R") for half in (1, 2)]
    return sorted([*halves, *_ALIASES])
