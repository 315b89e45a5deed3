"""The version of the learner protocol; a learner and a harness understand each other within one major version."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

PROTOCOL_VERSION = "1.0"


def _same_major(version: str) -> str:
    if version.split(".")[0] != PROTOCOL_VERSION.split(".")[0]:
        raise ValueError(f"protocol {version} is spoken, {PROTOCOL_VERSION} is understood")
    return version


Version: TypeAlias = Annotated[
    str, Field(pattern=r"^[1-9][0-9]{0,3}\.[0-9]{1,4}$", max_length=16), AfterValidator(_same_major)
]
"""A version that this side understands: each side tells its own in `describe` and refuses another major version."""
