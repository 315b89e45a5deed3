"""A state as files, and arrays as `.npy` files whose header is known in advance.

A state directory holds `state.json` (the skeleton), `arrays.safetensors` and `tensors.safetensors`; nothing is pickled.
"""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from suite.protocol.errors import ProtocolError, StateError, StateTooLargeError
from suite.protocol.limits import MAX_SKELETON_BYTES, MAX_TENSOR_HEADER_BYTES
from suite.protocol.state import Tree, join, split

SKELETON = "state.json"
ARRAYS = "arrays.safetensors"
TENSORS = "tensors.safetensors"


def write_state(tree: Tree, directory: Path) -> None:
    """Write `tree` into `directory` (which must exist).

    Raises StateError naming a leaf that may not be carried, StateTooLargeError when there is no room for the files.
    """
    parts = split(tree)
    text = json.dumps({"state": parts.skeleton}, separators=(",", ":"), allow_nan=False)
    if len(text) > MAX_SKELETON_BYTES:
        raise StateError(
            f"The state's scalars and structure take {len(text)} bytes of JSON; the limit is {MAX_SKELETON_BYTES}.",
            "Put long lists of numbers into arrays.",
        )
    with _room():
        if parts.arrays:
            from safetensors.numpy import save_file

            save_file(parts.arrays, directory / ARRAYS)
            _check_header(directory / ARRAYS)
        if parts.tensors:
            from safetensors.torch import save_file as save_tensors

            save_tensors(parts.tensors, directory / TENSORS)
            _check_header(directory / TENSORS)
        (directory / SKELETON).write_text(text, encoding="utf-8")


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def _room() -> Iterator[None]:
    """Tell a state that outgrows its place from other failures; safetensors keeps the errno in its message only."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        is_full = getattr(error, "errno", None) in _FULL or any(f"(os error {n})" in str(error) for n in _FULL)
        if not is_full:
            raise
        raise StateTooLargeError(f"The state does not fit: {error}.", "Store less from task to task.") from error


def _check_header(file: Path) -> None:
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
    if length > MAX_TENSOR_HEADER_BYTES:
        raise StateError(
            f"The names and shapes in {file.name} take {length} bytes; the limit is {MAX_TENSOR_HEADER_BYTES}.",
            "Join small arrays into larger ones.",
        )


def read_state(directory: Path) -> Tree:
    """The tree in `directory`; tensors come back on the CPU. Raises StateError if its files are malformed."""
    from safetensors import SafetensorError

    try:
        skeleton = _read_skeleton(directory / SKELETON)
        arrays, tensors = {}, {}
        if (directory / ARRAYS).exists():
            from safetensors.numpy import load_file

            arrays = load_file(directory / ARRAYS)
        if (directory / TENSORS).exists():
            from safetensors.torch import load_file as load_tensors

            tensors = load_tensors(directory / TENSORS)
        return join(skeleton, arrays, tensors)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        raise StateError(f"The state cannot be read: {error}.") from error


def _read_skeleton(file: Path) -> Any:
    if file.stat().st_size > MAX_SKELETON_BYTES:
        raise StateError(f"{file.name} exceeds {MAX_SKELETON_BYTES} bytes.")
    return json.loads(file.read_text(encoding="utf-8"))["state"]


def npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The only header that an output array of this dtype (`<f4`, ...) and shape may have (`.npy` version 1.0)."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def write_array(array: np.ndarray, path: Path) -> None:
    """Write float32 `array` in C order under the header of `npy_header`."""
    data = np.asarray(array, dtype="<f4", order="C")
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
