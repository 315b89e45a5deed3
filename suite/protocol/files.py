"""A state as files, and arrays as `.npy` files whose header is known in advance.

A state directory holds `state.json` (the skeleton), `arrays.safetensors` and `tensors.safetensors`; nothing is pickled.
"""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from suite.protocol.errors import ProtocolError, StateError
from suite.protocol.limits import MAX_STATE_FILES, MAX_STATE_HEADER_BYTES
from suite.protocol.state import Tree, join, split

SKELETON = "state.json"
ARRAYS = "arrays.safetensors"
TENSORS = "tensors.safetensors"


def write_state(tree: Tree, directory: Path) -> None:
    """Write `tree` into `directory` (which must exist). Raises StateError naming a leaf that may not be carried."""
    parts = split(tree)
    text = json.dumps({"state": parts.skeleton}, separators=(",", ":"), allow_nan=False)
    if len(text) > MAX_STATE_HEADER_BYTES:
        raise StateError(
            f"The state's scalars and structure take {len(text)} bytes of JSON; the limit is {MAX_STATE_HEADER_BYTES}.",
            "Put long lists of numbers into arrays.",
        )
    if parts.arrays:
        from safetensors.numpy import save_file

        save_file(parts.arrays, directory / ARRAYS)
    if parts.tensors:
        from safetensors.torch import save_file as save_tensors

        save_tensors(parts.tensors, directory / TENSORS)
    (directory / SKELETON).write_text(text, encoding="utf-8")


def read_state(directory: Path) -> Tree:
    """The tree in `directory`; tensors come back on the CPU. Raises StateError if its files are malformed."""
    try:
        skeleton = json.loads((directory / SKELETON).read_text(encoding="utf-8"))["state"]
        arrays, tensors = {}, {}
        if (directory / ARRAYS).exists():
            from safetensors.numpy import load_file

            arrays = load_file(directory / ARRAYS)
        if (directory / TENSORS).exists():
            from safetensors.torch import load_file as load_tensors

            tensors = load_tensors(directory / TENSORS)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateError(f"The state cannot be read: {error}.") from error
    return join(skeleton, arrays, tensors)


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
    if not (directory / SKELETON).exists():
        raise StateError(f"The state has no {SKELETON}.")
    if (directory / SKELETON).stat().st_size > MAX_STATE_HEADER_BYTES:
        raise StateError(f"{SKELETON} exceeds {MAX_STATE_HEADER_BYTES} bytes.")
    return StateSummary(len(files), sum(f.stat().st_size for f in files), elements)


_ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip


def _count_elements(file: Path) -> int:
    """Numbers in a safetensors file whose header must account for every byte: no hidden tail, no overlap."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else -1
        if not 0 < length <= min(MAX_STATE_HEADER_BYTES, size - 8):
            raise StateError(f"{file.name} has a malformed header.")
        raw = stream.read(length)
    try:
        header = json.loads(raw)
        entries = [entry for name, entry in header.items() if name != "__metadata__"]
        spans = sorted(
            (*map(int, e["data_offsets"]), _ITEM_BYTES[e["dtype"]], prod(map(int, e["shape"]))) for e in entries
        )
        if any(int(d) < 0 for e in entries for d in e["shape"]):
            raise StateError(f"{file.name} has a negative dimension.")
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


def npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The only header that an output array of this dtype (`<f4`, ...) and shape may have (`.npy` version 1.0)."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def write_array(array: np.ndarray, path: Path) -> None:
    """Write float32 `array` in C order under the header of `npy_header`."""
    data = np.ascontiguousarray(array, dtype="<f4")
    with path.open("wb") as stream:
        stream.write(npy_header("<f4", data.shape))
        stream.write(data.data if data.size else b"")


def read_array(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """A float32 array [shape] that a container wrote. Raises ProtocolError unless header, size and values are sound."""
    header = npy_header("<f4", shape)
    expected = len(header) + 4 * prod(shape)
    if not path.is_file() or path.is_symlink():
        raise ProtocolError(f"{path.name} was not written.")
    if path.stat().st_size != expected:
        raise ProtocolError(f"{path.name} has {path.stat().st_size} bytes; float32 {list(shape)} takes {expected}.")
    with path.open("rb") as stream:
        if stream.read(len(header)) != header:
            raise ProtocolError(f"{path.name} is not float32 {list(shape)} in C order, `.npy` version 1.0.")
        array = np.fromfile(stream, dtype="<f4", count=prod(shape)).reshape(shape)
    if not np.isfinite(array).all():
        raise ProtocolError(f"{path.name} holds NaN or infinite values.")
    return array
