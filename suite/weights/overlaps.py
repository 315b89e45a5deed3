"""Which classes of a data set the weights have seen in their pretraining."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from suite.weights.manifest import Pretraining, WeightsManifest

_SYNSET = re.compile(r"n\d{8}")


@dataclass(frozen=True)
class Overlap:
    """`shared` are names of the data set's classes; None where it is not known what the weights have seen."""

    classes: int
    shared: tuple[str, ...] | None

    @property
    def share(self) -> float | None:
        """Part of the data set's classes that were seen, 0 to 1."""
        return None if self.shared is None else len(self.shared) / max(1, self.classes)


def overlap(manifest: WeightsManifest, class_names: Sequence[str]) -> Overlap:
    """Classes of `class_names` that occur in the pretraining of the weights, by name.

    Names count as equal when they differ in case, spaces, underscores and hyphens only; WordNet numbers and any of the
    synonyms of an ImageNet class count as its names. Classes that look alike under other names are not found.
    """
    seen = pretraining_classes(manifest.pretraining)
    if seen is None:
        return Overlap(len(class_names), None)
    keys = {plain(name) for name in seen}
    return Overlap(len(class_names), tuple(name for name in class_names if plain(name) in keys))


def pretraining_classes(pretraining: Pretraining | None) -> tuple[str, ...] | None:
    """Names of the classes seen in pretraining; None where they are not known. ImageNet's need timm."""
    if pretraining is None:
        return None
    if pretraining.classes:
        return pretraining.classes
    return tuple(_imagenet(pretraining.vocabulary)) if pretraining.vocabulary else None


def plain(name: str) -> str:
    """A name without what spelling varies in; a leading WordNet number stands for the whole."""
    if match := _SYNSET.match(name):
        return match[0]
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _imagenet(vocabulary: str) -> Iterable[str]:
    """WordNet numbers and synonyms of ImageNet's classes, from the lists that timm carries."""
    from timm.data.imagenet_info import ImageNetInfo

    info: Any = ImageNetInfo("imagenet-21k-goog" if vocabulary == "imagenet-21k" else "imagenet-1k")
    for index in range(info.num_classes()):
        yield info.index_to_label_name(index)
        yield from info.index_to_description(index).split(", ")
