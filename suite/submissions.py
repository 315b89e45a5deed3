"""Submission manifests: one TOML file per leaderboard entry, `submissions/<slug>.toml`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from suite.errors import ManifestError

SLUG = r"^[a-z0-9][a-z0-9-]{0,62}$"
HttpsUrl = Annotated[str, Field(pattern=r"^https://[^\s<>\"']{1,300}$")]


def _printable(text: str) -> str:
    """No control characters and nothing that turns text round: it is shown on terminals, too."""
    if not text.replace("\n", "").isprintable():
        raise ValueError("it holds characters that cannot be printed")
    return text


def _one_line(text: str) -> str:
    if "\n" in text:
        raise ValueError("it must be one line")
    return text


Text = Annotated[str, AfterValidator(_printable)]
Line = Annotated[Text, AfterValidator(_one_line)]


class Submission(BaseModel):
    """Who submits what; shown on the site, never acted upon by the harness beyond `image`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slug: Annotated[str, Field(pattern=SLUG)]
    title: Annotated[Line, Field(min_length=1, max_length=80)]
    description: Annotated[Text, Field(max_length=1000)] = ""
    authors: list[Annotated[Line, Field(min_length=1, max_length=100)]] = Field(min_length=1, max_length=50)
    image: Annotated[str, Field(pattern=r"^[a-z0-9][a-zA-Z0-9._/:@-]{0,254}$")]
    """Reference of the image that `suite submit` runs."""
    group: Literal["scratch", "pretrained"]
    kind: Literal["reference", "baseline", "example", "external"] = "external"
    source: HttpsUrl | Annotated[str, Field(pattern=r"^containers/[A-Za-z0-9_./-]{1,200}$")]
    """Where the source lies: a folder of this repository, or an https address."""
    paper: Annotated[Line, Field(max_length=300)] = ""
    paper_url: HttpsUrl | None = None
    licence: Annotated[Line, Field(max_length=60)] = ""
    pretraining_data: Annotated[Line, Field(max_length=300)] = ""
    """What the learner was trained on beforehand; telling is no disadvantage."""
    tracks: list[Annotated[str, Field(pattern=SLUG)]] = Field(default_factory=list, max_length=50)
    """Tracks that CI evaluates it on."""

    @field_validator("source")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        if ".." in value.split("/"):
            raise ValueError("a source folder may not contain '..'")
        return value


def read_submission(path: Path) -> Submission:
    """The manifest in a file. Raises ManifestError naming the first thing that is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path} cannot be read.", "Give the path of a TOML file.") from error
    try:
        submission = Submission.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ManifestError(f"{path}: {where}: {first['msg']}.", "Compare with a shipped manifest.") from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and what tomllib lets through
        raise ManifestError(f"{path} is not TOML: {error}.", "Mend the line that it names.") from error
    if submission.slug != path.stem:
        raise ManifestError(f"{path} has the slug {submission.slug!r}.", f"Call the file {submission.slug}.toml.")
    return submission


def read_submissions(folder: Path) -> dict[str, Submission]:
    """All manifests of a folder by slug; empty if there is no such folder."""
    return {s.slug: s for s in (read_submission(f) for f in sorted(folder.glob("*.toml")))} if folder.is_dir() else {}


def slug_of_image(image: str) -> str:
    """A slug made from an image reference: `suite-reference:der` gives `suite-reference-der`."""
    name = image.rsplit("/", 1)[-1].split("@")[0].removesuffix(":latest")
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:63]
    return slug or "submission"
