"""One pool of classes from many data sets: filters, content hash, growth, and a split of each class.

This part works on manifests only: which classes there are, how many images they have and what these hash to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from suite.errors import UsageError
from suite.seeds import content_hash, derive_seed, shuffled

Source = Literal["train", "test"]


class PoolClass(BaseModel):
    """A class of the pool; `test` is 0 where the source has no test split of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: str = Field(
        min_length=1, max_length=100, pattern=r"^[^/]+$", description="data set that the class is from"
    )
    name: str = Field(min_length=1, max_length=200, description="name of the class there")
    train: int = Field(ge=0, description="images in the training split of the source")
    test: int = Field(default=0, ge=0, description="images in the test split of the source")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="hash of the images of both splits")

    @property
    def key(self) -> str:
        """`dataset/name`, unique in a pool."""
        return f"{self.dataset}/{self.name}"


class PoolDataset(BaseModel):
    """Where classes of a pool come from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=100, pattern=r"^[^/]+$")
    licence: str = Field(min_length=1, max_length=200)
    source: str = Field(min_length=1, max_length=1000, description="address or citation")
    classes: tuple[PoolClass, ...]

    @model_validator(mode="after")
    def _own_classes(self) -> Self:
        if any(each.dataset != self.name for each in self.classes):
            raise ValueError(f"a class of {self.name} names another data set")
        if len({each.name for each in self.classes}) != len(self.classes):
            raise ValueError(f"{self.name} holds two classes of one name")
        return self


class Pool(BaseModel):
    """Classes to draw tasks from. A class is numbered by its place in `classes`; files name it by its key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=100)
    version: int = Field(default=1, ge=1)
    parent: str | None = Field(default=None, description="hash of the version that this one grew from")
    min_images: int = Field(
        default=1, ge=1, description="classes with fewer images, both splits together, are left out"
    )
    datasets: tuple[PoolDataset, ...]

    @model_validator(mode="after")
    def _unique(self) -> Self:
        if len({each.name for each in self.datasets}) != len(self.datasets):
            raise ValueError("two data sets of a pool have one name")
        return self

    @property
    def classes(self) -> tuple[PoolClass, ...]:
        """The classes that pass the filter, ordered by data set and name."""
        members = (each for dataset in self.datasets for each in dataset.classes)
        return tuple(
            sorted((c for c in members if c.train + c.test >= self.min_images), key=lambda c: (c.dataset, c.name))
        )

    @property
    def hash(self) -> str:
        """Content hash of the classes that pass the filter: equal pools draw equal tasks from equal images."""
        return content_hash([[c.dataset, c.name, c.train, c.test, c.sha256] for c in self.classes])

    def grown(self, datasets: Sequence[PoolDataset]) -> Pool:
        """The next version, with further data sets. UsageError when one of them is in the pool already."""
        known = {each.name for each in self.datasets}
        twice = sorted({each.name for each in datasets} & known)
        if twice or not datasets:
            message = f"The pool holds {', '.join(twice)} already." if twice else "There is nothing to add to the pool."
            raise UsageError(message, "A pool grows by new data sets; build a new pool to change old ones.")
        return Pool(
            name=self.name,
            version=self.version + 1,
            parent=self.hash,
            min_images=self.min_images,
            datasets=(*self.datasets, *datasets),
        )


class ClassSplit(BaseModel):
    """Positions of the images of a class: `train` and `validation` in the source's training split."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    train: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]
    test_source: Source = Field(description="the split of the source that `test` counts in")


def split_class(member: PoolClass, validation: float = 0.1, test: float = 0.2) -> ClassSplit:
    """Train, validation and test images of a class, the same in every pool that holds it.

    The test split of the source is used whole where there is one; else a share `test` of the training split takes its
    place. A share `validation` of the training split is for rewards. Every part gets at least one image, else
    UsageError.
    """
    if validation <= 0 or test <= 0 or validation + test >= 1:
        raise ValueError("shares must be positive and leave something to train on")
    own = member.test > 0
    key = derive_seed("pool split", member.dataset, member.name, member.sha256)
    order = shuffled(range(member.train), key)
    tested = 0 if own else max(1, round(test * member.train))
    validated = max(1, round(validation * member.train))
    if tested + validated >= member.train:
        message = f"The class {member.key} has {member.train} training images, too few to split."
        raise UsageError(message, "Raise min_images of the pool.")
    return ClassSplit(
        train=tuple(sorted(order[tested + validated :])),
        validation=tuple(sorted(order[tested : tested + validated])),
        test=tuple(range(member.test)) if own else tuple(sorted(order[:tested])),
        test_source="test" if own else "train",
    )
