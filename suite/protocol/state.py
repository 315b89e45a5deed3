"""The state tree: what a learner may carry from one task to the next (DESIGN 4).

A tree of dicts, lists and tuples over arrays, PyTorch tensors, numbers, strings, booleans and None, as `state_dict`
gives it. `split` takes it apart into JSON and flat arrays, `join` puts it together; anything else is refused by
its path.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from suite.protocol.errors import StateError
from suite.protocol.limits import MAX_DEPTH

if TYPE_CHECKING:
    import torch

Tree: TypeAlias = Any
"""A state tree; its leaves are checked by `split`, not by the type system."""

_ARRAYS = frozenset(
    ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
)
_TENSORS = _ARRAYS | {"bfloat16", "float8_e4m3fn", "float8_e5m2"}
_LEVELS = 4 * MAX_DEPTH
_MAX_INT_BITS = 1024


class Split:
    """A tree taken apart: its JSON skeleton, its arrays and its tensors by key."""

    def __init__(self) -> None:
        self.skeleton: Any = None
        self.arrays: dict[str, np.ndarray] = {}
        self.tensors: dict[str, torch.Tensor] = {}


def split(tree: Tree) -> Split:
    """Take `tree` apart. Raises StateError with the path of the first value that may not be carried."""
    result = Split()
    result.skeleton = _encode(tree, "state", result, 0)
    return result


def _encode(value: Tree, path: str, out: Split, level: int) -> Any:
    if level > _LEVELS:
        raise StateError(f"{path} is nested deeper than {_LEVELS} levels.", "Flatten the state.")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return _encode_array(value, path, out)
    if isinstance(value, int):
        return value if _is_plain(value) else {"$int": str(_bounded(value, path))}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, dict):
        return {"$dict": [[_key(k, path), _encode(v, f"{path}[{k!r}]", out, level + 1)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        items = [_encode(v, f"{path}[{i}]", out, level + 1) for i, v in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if _is_tensor(value):
        return _encode_tensor(value, path, out)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise StateError(
        f"{path} is a {kind}, which a state cannot carry.",
        "Give arrays, tensors, numbers, strings, or dicts, lists and tuples of them (as state_dict() does).",
    )


def _encode_array(value: np.generic | np.ndarray, path: str, out: Split) -> Any:
    native = value.dtype.newbyteorder("=")
    if native.name not in _ARRAYS or isinstance(value, np.ma.MaskedArray):
        kind = "a masked array" if isinstance(value, np.ma.MaskedArray) else f"an array of dtype {value.dtype}"
        raise StateError(
            f"{path} is {kind}, which a state cannot carry.", "Use booleans, integers or floats of at most 64 bits."
        )
    key = f"a{len(out.arrays)}"
    # A copy in native byte order and C order: the state must not change when the learner goes on.
    out.arrays[key] = np.array(value, dtype=native, order="C", copy=True)
    return {"$array" if isinstance(value, np.ndarray) else "$scalar": key}


def _encode_tensor(value: torch.Tensor, path: str, out: Split) -> Any:
    torch_module = sys.modules["torch"]
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in _TENSORS or value.layout != torch_module.strided or value.is_meta:
        kind = "meta" if value.is_meta else f"{str(value.layout).removeprefix('torch.')} {dtype}"
        raise StateError(
            f"{path} is a {kind} tensor, which a state cannot carry.",
            "Use dense tensors of booleans, integers or real floats.",
        )
    key = f"t{len(out.tensors)}"
    # One copy, straight to host memory: a second one on the device could be the one too many.
    out.tensors[key] = torch_module.empty(value.shape, dtype=value.dtype, device="cpu").copy_(value.detach())
    return {"$tensor": key}


def _is_plain(value: int) -> bool:
    return -(2**63) <= value < 2**64


def _bounded(value: int, path: str) -> int:
    if value.bit_length() > _MAX_INT_BITS:
        raise StateError(f"{path} is an integer of more than {_MAX_INT_BITS} bits.", "Use an array.")
    return value


def _key(key: Any, path: str) -> Any:
    if isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool) and _is_plain(key)):
        return key
    raise StateError(f"{path} has a key of type {type(key).__name__}.", "Use strings or 64-bit integers as keys.")


def _is_tensor(value: Any) -> bool:
    torch_module = sys.modules.get("torch")
    return torch_module is not None and isinstance(value, torch_module.Tensor)


def join(skeleton: Any, arrays: dict[str, np.ndarray], tensors: dict[str, torch.Tensor]) -> Tree:
    """The tree that `split` took apart. Raises StateError if the skeleton names what is not there."""
    if isinstance(skeleton, list):
        return [join(v, arrays, tensors) for v in skeleton]
    if not isinstance(skeleton, dict):
        return skeleton
    if len(skeleton) != 1:
        raise StateError("The state's skeleton is malformed.")
    ((tag, body),) = skeleton.items()
    try:
        return _JOINERS[tag](body, arrays, tensors)
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(f"The state's skeleton has a bad {tag!r}.") from error


_JOINERS: dict[str, Any] = {
    "$array": lambda body, arrays, _: arrays[body],
    "$scalar": lambda body, arrays, _: arrays[body][()],
    "$tensor": lambda body, _, tensors: tensors[body],
    "$tuple": lambda body, arrays, tensors: tuple(join(v, arrays, tensors) for v in body),
    "$dict": lambda body, arrays, tensors: {k: join(v, arrays, tensors) for k, v in body},
    "$float": lambda body, *_: float(body),
    "$int": lambda body, *_: int(body),
}
