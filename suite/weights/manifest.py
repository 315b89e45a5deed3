"""What is written down of a file of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from suite.errors import DataError
from suite.seeds import canonical_json

MANIFEST_FILE = "manifest.json"
_MAX_MANIFEST_BYTES = 16 << 20

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, Field(max_length=2000)]
WeightsName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Pretraining(_Model):
    """What the weights have seen."""

    data_set: Text
    data_sha256: Sha256 | None = None
    """Content hash, where it is a data set of this suite."""
    classes: tuple[Text, ...] = ()
    """Class names in that data set; empty where they are those of `vocabulary`."""
    vocabulary: Literal["imagenet-1k", "imagenet-21k"] | None = None
    test_accuracy: Annotated[float, Field(ge=0, le=1)] | None = None


class WeightsManifest(_Model):
    """One file of weights; `sha256` is that of the file."""

    format: Literal[1] = 1
    name: WeightsName
    sha256: Sha256
    size_bytes: Annotated[int, Field(ge=1)]
    parameters: Annotated[int, Field(ge=1)]
    """Numbers in the file: the network without its classification head."""
    licence: Text
    source: Text
    revision: Text = ""
    """The commit of the source, where it has one."""
    remark: Text = ""
    pretraining: Pretraining | None = None
    made_with: dict[str, str] = Field(default_factory=dict)
    """Versions and settings that made the file, where it was made here."""

    def to_json(self) -> str:
        """Canonical JSON, one line."""
        return canonical_json(self.model_dump(mode="json")) + "\n"


def read_manifest(folder: Path) -> WeightsManifest:
    """The manifest in `folder`. Raises DataError when it is absent or malformed."""
    path = folder / MANIFEST_FILE
    remedy = f"Delete {folder} and add or fetch the weights again."
    try:
        if path.stat().st_size > _MAX_MANIFEST_BYTES:
            raise DataError(f"{path} is too large for a manifest.", remedy)
        return WeightsManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "manifest"
        raise DataError(f"{path} is malformed ({where}: {first['msg']}).", remedy) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).", remedy) from error
