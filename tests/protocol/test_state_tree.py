"""The state tree: what comes out of the files is what went in, and stays what it was when the learner goes on."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from suite.protocol import StateError, StateTooLargeError, read_state, summarise_state, write_state
from suite.protocol.files import SKELETON

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
TENSOR_DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


def arrays() -> st.SearchStrategy[np.ndarray]:
    dtypes = st.tuples(st.sampled_from("<>"), st.sampled_from(DTYPES)).map("".join).map(np.dtype)
    return dtypes.flatmap(lambda dtype: hnp.arrays(dtype, SHAPES))


def tensors() -> st.SearchStrategy[torch.Tensor]:
    def make(dtype: torch.dtype, shape: tuple[int, ...], seed: int) -> torch.Tensor:
        numbers = torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(seed))
        return numbers.to(dtype)

    return st.builds(make, st.sampled_from(TENSOR_DTYPES), SHAPES, st.integers(0, 9))


SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text()
    | st.sampled_from([-0.0, 5e-324, 2**63, 2**64, -(2**63) - 1, 10**300, "\ud800", "$tuple", "\0"])
)  # fmt: skip
KEYS = st.text(max_size=4) | st.integers(-(2**63), 2**64 - 1) | st.sampled_from(["$dict", "$array", "1"])
TREES = st.recursive(
    SCALARS
    | arrays()
    | tensors()
    | st.sampled_from([np.float32(1.5), np.int8(-3), np.bool_(True), np.uint64(2**64 - 1)]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=10,
)


def carried(tree: Any, folder: Path) -> Any:
    for file in folder.iterdir():
        file.unlink()
    write_state(tree, folder)
    return read_state(folder)


def assert_same(a: Any, b: Any) -> None:
    """Equal in type, order, dtype, shape and bits (NaN equals NaN)."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert [*a] == [*b]
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, torch.Tensor):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert torch.equal(a.double(), b.double())
    elif isinstance(a, np.ndarray | np.generic):
        assert a.shape == b.shape
        assert a.dtype.newbyteorder("=") == b.dtype
        assert b.dtype.isnative
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, float):
        assert math.isnan(a) if math.isnan(b) else (a == b and math.copysign(1, a) == math.copysign(1, b))
    else:
        assert a == b


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(tree=TREES)
def test_a_tree_comes_back_as_it_was(tree: Any, tmp_path: Path) -> None:
    assert_same(tree, carried(tree, tmp_path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(tree=TREES)
def test_every_number_of_a_tree_is_counted(tree: Any, tmp_path: Path) -> None:
    carried(tree, tmp_path)
    summary = summarise_state(tmp_path)
    assert summary.elements == elements(tree)
    assert summary.files == len(list(tmp_path.iterdir()))
    assert summary.bytes == sum(f.stat().st_size for f in tmp_path.iterdir())


def elements(tree: Any) -> int:
    if isinstance(tree, dict):
        return sum(map(elements, tree.values()))
    if isinstance(tree, list | tuple):
        return sum(map(elements, tree))
    if isinstance(tree, torch.Tensor):
        return tree.numel()
    return int(tree.size) if isinstance(tree, np.ndarray | np.generic) else 0


VIEWS: dict[str, Any] = {
    "a slice with steps": np.arange(12).reshape(3, 4)[::2, ::-1],
    "Fortran order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "broadcast": np.broadcast_to(np.float32(2), (2, 3)),
    "big-endian": np.arange(3, dtype=">f4"),
    "a transposed tensor": torch.arange(6).reshape(2, 3).t(),
    "an expanded tensor": torch.ones(1, 3).expand(2, 3),
    "channels last": torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "a conjugate's imaginary part": torch.tensor([1 + 2j]).conj().imag,
}


@pytest.mark.parametrize("name", VIEWS)
def test_what_lies_scattered_in_memory_is_carried_in_order(name: str, tmp_path: Path) -> None:
    assert_same_values(VIEWS[name], carried({"x": VIEWS[name]}, tmp_path)["x"])


def assert_same_values(a: Any, b: Any) -> None:
    assert a.shape == b.shape
    assert a.tolist() == b.tolist()
    assert b.is_contiguous() if isinstance(b, torch.Tensor) else b.flags.c_contiguous


def test_a_parameter_comes_back_as_a_plain_tensor_without_gradient(tmp_path: Path) -> None:
    layer = torch.nn.Linear(2, 2)
    back = carried(layer.state_dict(keep_vars=True), tmp_path)
    assert type(back["weight"]) is torch.Tensor
    assert not back["weight"].requires_grad
    assert torch.equal(back["weight"], layer.weight)


def test_kinds_of_dicts_and_tuples_become_the_plain_ones(tmp_path: Path) -> None:
    pair = namedtuple("pair", "a b")
    back = carried({"o": OrderedDict(b=1, a=2), "t": pair(1, 2), "s": torch.Size([2, 3])}, tmp_path)
    assert back == {"o": {"b": 1, "a": 2}, "t": (1, 2), "s": (2, 3)}
    assert [type(v) for v in back.values()] == [dict, tuple, tuple]


def test_integer_and_string_keys_stay_apart(tmp_path: Path) -> None:
    assert carried({1: "number", "1": "text"}, tmp_path) == {1: "number", "1": "text"}


# --- the state is a copy ----------------------------------------------------------------------------------------------


def test_the_files_do_not_change_when_the_learner_goes_on(tmp_path: Path) -> None:
    state: dict[str, Any] = {"a": np.zeros(3), "t": torch.zeros(3), "l": [np.zeros(1)]}
    write_state(state, tmp_path)
    before = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    back = read_state(tmp_path)
    for tree in (state, back):
        tree["a"] += 1
        tree["t"] += 1
        tree["l"][0][...] = 5
        tree["l"].append(1)
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == before
    assert_same(read_state(tmp_path), {"a": np.zeros(3), "t": torch.zeros(3), "l": [np.zeros(1)]})


def test_what_was_read_survives_its_files(tmp_path: Path) -> None:
    back = carried({"a": np.arange(1000), "t": torch.arange(1000)}, tmp_path)
    for file in tmp_path.iterdir():
        file.unlink()
    assert back["a"].sum() == back["t"].sum() == 499500


def test_tensors_that_share_memory_come_back_apart(tmp_path: Path) -> None:
    shared = torch.zeros(2)
    back = carried({"a": shared, "b": shared}, tmp_path)
    back["a"] += 1
    assert back["b"].tolist() == [0, 0]


def test_equal_trees_give_equal_bytes(tmp_path: Path) -> None:
    """The state's hash stands for the state."""
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_state({f"k{i}": v for i, v in enumerate([np.arange(3), torch.ones(2), 1.5, np.eye(2)])}, tmp_path / name)
        contents.append({f.name: f.read_bytes() for f in (tmp_path / name).iterdir()})
    assert contents[0] == contents[1]


# --- what may not be carried ------------------------------------------------------------------------------------------


class Thing:
    pass


def endless() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "an object": (lambda: {"net": [Thing()]}, r"state\['net'\]\[0\] is a .*Thing"),
    "a module": (lambda: {"net": torch.nn.Linear(1, 1)}, r"state\['net'\] is a torch.nn.*Linear"),
    "a function": (lambda: {"f": (1, len)}, r"state\['f'\]\[1\] is a builtins"),
    "a set": (lambda: {"s": {1}}, r"state\['s'\] is a builtins.set"),
    "bytes": (lambda: {1: b"x"}, r"state\[1\] is a builtins.bytes"),
    "a path": (lambda: {"p": Path()}, r"state\['p'\] is a pathlib"),
    "a complex number": (lambda: {"c": 1j}, r"state\['c'\] is a builtins.complex"),
    "a generator": (lambda: {"g": torch.Generator()}, r"state\['g'\]"),
    "an array of objects": (lambda: {"a": np.array([None])}, r"state\['a'\] is an array of dtype object"),
    "an array of text": (lambda: {"a": np.array(["x"])}, r"state\['a'\] is an array of dtype <U1"),
    "complex arrays": (lambda: {"a": np.zeros(1, complex)}, r"state\['a'\] is an array of dtype complex128"),
    "dates": (lambda: {"a": np.zeros(1, "M8[s]")}, r"state\['a'\] is an array of dtype datetime64"),
    "records": (lambda: {"a": np.zeros(1, "i4,f4")}, r"state\['a'\] is an array"),
    "long doubles": (lambda: {"a": np.zeros(1, np.longdouble)}, r"state\['a'\] is an array of dtype"),
    "masked arrays": (lambda: {"a": np.ma.masked_array([1], [True])}, r"state\['a'\] is a masked array"),
    "complex tensors": (lambda: {"t": torch.zeros(1, dtype=torch.complex64)}, r"state\['t'\] is a strided complex64"),
    "sparse tensors": (lambda: {"t": torch.eye(2).to_sparse()}, r"state\['t'\] is a sparse_coo"),
    "tensors without data": (lambda: {"t": torch.zeros(1, device="meta")}, r"state\['t'\] is a meta tensor"),
    "boolean keys": (lambda: {"d": {True: 1}}, r"state\['d'\] has a key of type bool"),
    "tuple keys": (lambda: {"d": {(1, 2): 1}}, r"state\['d'\] has a key of type tuple"),
    "numpy keys": (lambda: {np.int64(1): 1}, r"state has a key of type int64"),
    "huge keys": (lambda: {2**64: 1}, r"state has a key of type int"),
    "huge integers": (lambda: {"n": 10**5000}, r"state\['n'\] is an integer of more than 1024 bits"),
    "a list in itself": (endless, r"nested deeper than 64 levels"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_not_be_carried_is_refused_by_its_path(name: str, tmp_path: Path) -> None:
    make, complaint = REFUSED[name]
    with pytest.raises(StateError, match=complaint) as caught:
        write_state(make(), tmp_path)
    assert caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_scalars_and_structure_are_bounded(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="bytes of JSON"):
        write_state({"long": "x" * (17 << 20)}, tmp_path)


def test_the_number_of_arrays_is_bounded_by_their_header(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="names and shapes"):
        write_state([np.zeros(0)] * 80_000, tmp_path)


def test_a_state_without_room_is_told_from_a_crash(tmp_path: Path) -> None:
    """A file size limit stands in for a full volume; both end in an errno."""
    code = (
        "import resource, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from suite.protocol import StateTooLargeError, write_state\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "for state in ({'a': np.zeros(1000)}, {'a': 'x' * 5000}):\n"
        "    try:\n"
        "        write_state(state, Path(sys.argv[1]))\n"
        "    except StateTooLargeError:\n"
        "        print('too large')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["too large", "too large", ""]
    assert issubclass(StateTooLargeError, StateError)


# --- files that are no state ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "skeleton",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"state":',
        '{"state":{}}',
        '{"state":{"$array":"a0","$tensor":"t0"}}',
        '{"state":{"$array":"nowhere"}}',
        '{"state":{"$array":[]}}',
        '{"state":{"$tensor":"t0"}}',
        '{"state":{"$pickle":"gASV"}}',
        '{"state":{"$dict":[["a"]]}}',
        '{"state":{"$dict":[[[],1]]}}',
        '{"state":{"$dict":3}}',
        '{"state":{"$tuple":3}}',
        '{"state":{"$int":"9e9"}}',
        '{"state":{"$int":"' + "9" * 5000 + '"}}',
        '{"state":{"$float":"many"}}',
        '{"state":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"state":' + '{"$tuple":[' * 400 + "]}" * 400 + "}",
    ],
)
def test_a_malformed_skeleton_is_a_state_error(skeleton: str, tmp_path: Path) -> None:
    (tmp_path / SKELETON).write_text(skeleton)
    with pytest.raises(StateError):
        read_state(tmp_path)


@pytest.mark.parametrize("content", [b"", b"x" * 8, b"\xff" * 40, b"\x02" + b"\0" * 7 + b"{}tail"])
@pytest.mark.parametrize("file", ["arrays.safetensors", "tensors.safetensors"])
def test_malformed_arrays_are_a_state_error(content: bytes, file: str, tmp_path: Path) -> None:
    (tmp_path / SKELETON).write_text('{"state":1}')
    (tmp_path / file).write_bytes(content)
    with pytest.raises(StateError):
        read_state(tmp_path)


def test_no_files_are_a_state_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot be read"):
        read_state(tmp_path)
