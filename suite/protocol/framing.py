"""Lines in, objects out: the bounded reader that both ends put between bytes and JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from pydantic import BaseModel

from suite.protocol.errors import ProtocolError
from suite.protocol.limits import MAX_DEPTH, MAX_DIGITS, MAX_FRAME_BYTES

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # possessive: no memory for a way back
_LONG_NUMBER = re.compile(rb"\d{%d}" % (MAX_DIGITS + 1))
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def encode(message: BaseModel) -> bytes:
    """One message as one line of UTF-8 JSON. Raises ProtocolError if it is too long to send."""
    line = message.model_dump_json(exclude_none=True).encode() + b"\n"
    if len(line) > MAX_FRAME_BYTES:
        raise ProtocolError(f"A message of {len(line)} bytes exceeds the limit of {MAX_FRAME_BYTES}.")
    return line


def decode(line: bytes) -> dict[str, Any]:
    """One line as a JSON object. Raises ProtocolError for anything else, before building deep or huge values."""
    _check_structure(line)
    try:
        value = json.loads(
            line.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique_keys
        )
    except UnicodeDecodeError as error:
        raise ProtocolError("A message is not UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise ProtocolError("A message is not JSON.") from error
    if not isinstance(value, dict):
        raise ProtocolError("A message is not a JSON object.")
    return value


class LineReader:
    """Splits a byte stream into lines and never holds more than one frame of an unfinished one."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines completed by `data`, without their newlines. Raises ProtocolError on a line over the limit."""
        *complete, last = data.split(b"\n")
        for part in complete:
            self._extend(part)
            line = bytes(self._rest)
            self._rest.clear()
            yield line
        self._extend(last)

    def _extend(self, part: bytes) -> None:
        if len(self._rest) + len(part) >= self._limit:
            raise ProtocolError(f"A line exceeds the limit of {self._limit} bytes.")
        self._rest += part

    @property
    def pending(self) -> int:
        """Bytes of the unfinished line."""
        return len(self._rest)


def _check_structure(line: bytes) -> None:
    """Bound nesting and number length first: json's own recursion and int parsing can be made slow."""
    bare = _STRING.sub(b'"', line)
    if _LONG_NUMBER.search(bare):
        raise ProtocolError(f"A number has more than {MAX_DIGITS} digits.")
    brackets = bare.translate(None, _NOT_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise ProtocolError(f"A message is nested deeper than {MAX_DEPTH} levels.")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]} is too large")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("duplicate keys")
    return result
