"""The papers' data sets: where they are to be had, under which terms, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from suite.errors import DataError
from suite.seeds import derive_seed, shuffled

_RESEARCH = "research only, non-commercial; the images belong to their owners"


@dataclass(frozen=True)
class Paper:
    """One data set as its authors publish it."""

    source: str
    licence: str
    steps: str  # what to do before `suite data prepare NAME --from FILE`
    classes: int
    resolution: int
    reader: Literal["cifar10", "cifar100", "folders", "imagenet"] = "folders"
    sha256: str | None = None  # of the official archive, where known
    draw: int = 0  # which hundred of ImageNet's classes


def draw_hundred(names: Sequence[str], which: int) -> list[str]:
    """The `which`-th (1, 2) hundred of ImageNet's classes in a fixed shuffle of all thousand names.

    The papers do not list theirs. Raises DataError unless there are exactly a thousand.
    """
    if len(names) != 1000:
        raise DataError(
            f"{len(names)} classes instead of ImageNet's 1000.",
            "Give the folder that holds train/ and val/ with one folder per WordNet id (n01440764, ...).",
        )
    order = shuffled(sorted(names), derive_seed("draw", "ImageNet-1k"))
    return sorted(order[100 * (which - 1) : 100 * which])


def _hundred(which: int) -> Paper:
    return Paper(
        source="https://image-net.org/challenges/LSVRC/2012/",
        licence=_RESEARCH,
        steps="Register there, download ILSVRC2012, unpack it to FILE/train/<WordNet id>/ and FILE/val/<WordNet id>/.",
        classes=100,
        resolution=256,
        reader="imagenet",
        draw=which,
    )


PAPERS: dict[str, Paper] = {
    "CIFAR-10": Paper(
        source="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        licence="not stated",
        steps="Download that file.",
        classes=10,
        resolution=32,
        reader="cifar10",
    ),
    "CIFAR-100": Paper(
        source="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        licence="not stated",
        steps="Download that file.",
        classes=100,
        resolution=32,
        reader="cifar100",
    ),
    "CUB-200": Paper(
        source="https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
        licence=_RESEARCH,
        steps="Download that file.",
        classes=200,
        resolution=256,
        sha256="0c685df5597a8b24909f6a7c9db6d11e008733779a671760afef78feb49bf081",
    ),
    "ImageNet-100-1": _hundred(1),
    "ImageNet-100-2": _hundred(2),
    "ImageNet-A": Paper(
        source="https://people.eecs.berkeley.edu/~hendrycks/imagenet-a.tar",
        licence="MIT (of the repository); " + _RESEARCH,
        steps="Download that file.",
        classes=200,
        resolution=256,
    ),
    "ImageNet-R": Paper(
        source="https://people.eecs.berkeley.edu/~hendrycks/imagenet-r.tar",
        licence="MIT (of the repository); " + _RESEARCH,
        steps="Download that file.",
        classes=200,
        resolution=256,
    ),
}
