"""What a prepared data set says about itself: a directory with `manifest.json` and one `.npy` per class and split."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from suite.errors import DataError
from suite.seeds import canonical_json, content_hash

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")
CHANNELS = 3
FORMAT: Literal[1] = 1
MANIFEST_FILE = "manifest.json"
_MAX_MANIFEST_BYTES = 64 << 20

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, Field(max_length=2000)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClassFiles(_Model):
    """One class: its name in the source, and count and sha256 of its file in either split."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    train: Annotated[int, Field(ge=1)]
    test: Annotated[int, Field(ge=1)]
    train_sha256: Sha256
    test_sha256: Sha256

    def count(self, split: Split) -> int:
        """Images of the class in `split`."""
        return self.train if split == "train" else self.test

    def sha256(self, split: Split) -> str:
        """sha256 of the class's file in `split`, header included."""
        return self.train_sha256 if split == "train" else self.test_sha256


class Origin(_Model):
    """Where the images come from and what may be done with them."""

    source: Text  # an address, or a description where there is none
    licence: Text
    split: Literal["source", "seeded", "by_index"]  # 'seeded', 'by_index': made here, because the source has none
    notes: tuple[Text, ...] = ()  # e.g. 'reduced resolution: not comparable with the paper'
    source_sha256: Sha256 | None = None  # of the archive that was read, where there was one
    seed_commitment: Sha256 | None = None  # sha256 of a secret rendering seed; None when the seed is public


class Manifest(_Model):
    """A prepared data set. `sha256` covers what a learner can see: resolution, classes, counts and file hashes."""

    format: Literal[1] = FORMAT
    name: Annotated[str, Field(min_length=1, max_length=200)]
    version: Annotated[int, Field(ge=1)]
    resolution: Annotated[int, Field(ge=8, le=1024)]  # height and width in pixels
    classes: Annotated[tuple[ClassFiles, ...], Field(min_length=1)]
    origin: Origin
    sha256: Sha256

    @classmethod
    def build(cls, name: str, version: int, resolution: int, classes: tuple[ClassFiles, ...], origin: Origin) -> Self:
        """A manifest with its content hash."""
        digest = _content(resolution, classes)
        return cls(name=name, version=version, resolution=resolution, classes=classes, origin=origin, sha256=digest)

    @model_validator(mode="after")
    def _hash_is_right(self) -> Self:
        if self.sha256 != _content(self.resolution, self.classes):
            raise ValueError("content hash does not match the classes")
        return self

    def to_json(self) -> str:
        """Canonical JSON, one line."""
        return canonical_json(self.model_dump(mode="json")) + "\n"


def _content(resolution: int, classes: tuple[ClassFiles, ...]) -> str:
    return content_hash([resolution, CHANNELS, [c.model_dump(mode="json") for c in classes]])


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a prepared directory. Raises DataError when it is absent or malformed."""
    path = directory / MANIFEST_FILE
    remedy = f"Delete {directory} and prepare the data set again."
    try:
        if path.stat().st_size > _MAX_MANIFEST_BYTES:
            raise DataError(f"{path} is too large for a manifest.", remedy)
        return Manifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "manifest"
        raise DataError(f"{path} is malformed ({where}: {first['msg']}).", remedy) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).", remedy) from error
