"""What a state holds, counted from the headers of its files: safe on what a hostile container wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NoReturn

from suite.protocol.errors import StateError
from suite.protocol.files import SKELETON
from suite.protocol.limits import MAX_SKELETON_BYTES, MAX_STATE_FILES, MAX_TENSOR_HEADER_BYTES

_ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip
_MAX_AXES = 64
_MAX_NUMBER = 2**53


@dataclass(frozen=True)
class StateSummary:
    """What a state holds, counted from its files without loading them."""

    files: int
    bytes: int
    elements: int
    """Numbers in its arrays and tensors."""


def summarise_state(directory: Path) -> StateSummary:
    """Count a state that a container wrote. Raises StateError for files that a state may not have.

    Reads only bounded headers, so it is safe on hostile files once they lie on the host.
    """
    files = sorted(directory.iterdir())
    if len(files) > MAX_STATE_FILES:
        raise StateError(f"The state has {len(files)} files; the limit is {MAX_STATE_FILES}.")
    elements = 0
    for file in files:
        if file.is_symlink() or not file.is_file():
            raise StateError(f"The state holds {file.name!r}, which is not a regular file.")
        if file.suffix == ".safetensors":
            elements += _count_elements(file)
        elif file.name != SKELETON:
            raise StateError(f"The state holds {file.name!r}.", f"Only {SKELETON} and *.safetensors are carried.")
    skeleton = directory / SKELETON
    if skeleton not in files:
        raise StateError(f"The state has no {SKELETON}.")
    if skeleton.stat().st_size > MAX_SKELETON_BYTES:
        raise StateError(f"{SKELETON} exceeds {MAX_SKELETON_BYTES} bytes.")
    return StateSummary(len(files), sum(f.stat().st_size for f in files), elements)


def _count_elements(file: Path) -> int:
    """Numbers in a safetensors file whose header must account for every byte: no hidden tail, no overlap."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(8)
        length = int.from_bytes(head, "little") if len(head) == 8 else 0
        if not 0 < length <= min(MAX_TENSOR_HEADER_BYTES, size - 8):
            raise StateError(f"{file.name} has a malformed header.")
        raw = stream.read(length)
    try:
        spans = sorted(_span(entry) for name, entry in _parse(raw).items() if name != "__metadata__")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(f"{file.name} has a malformed header.") from error
    position = 0
    for start, end, item_bytes, count in spans:
        if start != position or end - start != item_bytes * count:
            raise StateError(f"{file.name} has a header that does not account for its bytes.")
        position = end
    if position != size - 8 - length:
        raise StateError(f"{file.name} has {size - 8 - length - position} bytes that its header does not name.")
    return sum(count for *_, count in spans)


def _parse(raw: bytes) -> Any:
    """The header; no reader may see in it anything but what is counted here, so duplicates are refused."""
    return json.loads(raw.decode("utf-8"), parse_constant=_refuse, parse_float=_refuse, object_pairs_hook=_unique)


def _span(entry: Any) -> tuple[int, int, int, int]:
    """(first byte, end, bytes per number, numbers) of one array."""
    start, end = entry["data_offsets"]
    shape = entry["shape"]
    if not isinstance(shape, list) or len(shape) > _MAX_AXES:  # before the product, which a long list makes slow
        raise ValueError("a shape")
    if any(type(n) is not int or not 0 <= n <= _MAX_NUMBER for n in (start, end, *shape)):
        raise ValueError("a number")
    return start, end, _ITEM_BYTES[entry["dtype"]], prod(shape)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate names")
    return found


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)
