"""Answers of a learner, checked before anything is done with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from suite.errors import ProtocolError

M = TypeVar("M", bound=BaseModel)


def checked(answer: Mapping[str, object], model: type[M]) -> M:
    """An answer as its model. Raises ProtocolError naming the first thing that is wrong."""
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(str(part)[:40] for part in first["loc"])
        raise ProtocolError(f"The learner's answer is malformed: {where}: {first['msg']}.") from error
