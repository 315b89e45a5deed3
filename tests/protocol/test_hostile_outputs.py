"""What a container wrote is counted and read without trust: bounded, strict, and never anything but a named error."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from suite.protocol import (
    ProtocolError,
    StateError,
    StateSummary,
    npy_header,
    read_array,
    summarise_state,
    write_array,
    write_state,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder with a skeleton and nothing else."""
    (tmp_path / "state.json").write_text('{"state":1}')
    return tmp_path


def put(folder: Path, header: Any, body: bytes = b"", name: str = "arrays.safetensors") -> None:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    (folder / name).write_bytes(len(raw).to_bytes(8, "little") + raw + body)


def entry(start: Any, end: Any, shape: Any, dtype: Any = "U8") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


# --- what is accepted -------------------------------------------------------------------------------------------------


def test_the_files_that_the_sdk_writes_are_counted(tmp_path: Path) -> None:
    write_state({"a": np.zeros((2, 3)), "b": [np.float32(1), np.zeros((0, 4))]}, tmp_path)
    size = sum(f.stat().st_size for f in tmp_path.iterdir())
    assert summarise_state(tmp_path) == StateSummary(files=2, bytes=size, elements=7)


def test_files_of_another_language_are_counted(folder: Path) -> None:
    put(folder, {"__metadata__": {"by": "rust"}, "w": entry(4, 12, [2, 1], "F32"), "v": entry(0, 4, [4])}, b"x" * 12)
    put(folder, b'{"s":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}   ', b"xx", "more.safetensors")
    assert summarise_state(folder).elements == 7


def test_empty_arrays_may_lie_anywhere(folder: Path) -> None:
    put(folder, {"a": entry(0, 0, [0]), "b": entry(0, 2, [2]), "c": entry(2, 2, [3, 0]), "d": entry(2, 3, [1])}, b"xxx")
    assert summarise_state(folder).elements == 3


# --- headers ----------------------------------------------------------------------------------------------------------

HEADERS: dict[str, tuple[Any, bytes]] = {
    "an overlap": ({"a": entry(0, 2, [2]), "b": entry(1, 3, [2])}, b"xxx"),
    "the same bytes twice": ({"a": entry(0, 2, [2]), "b": entry(0, 2, [2])}, b"xx"),
    "a gap": ({"a": entry(0, 1, [1]), "b": entry(2, 3, [1])}, b"xxx"),
    "a gap at the start": ({"a": entry(1, 2, [1])}, b"xx"),
    "a tail": ({"a": entry(0, 1, [1])}, b"xx"),
    "nothing but a tail": ({}, b"x"),
    "too little data": ({"a": entry(0, 2, [2])}, b"x"),
    "a reversed span": ({"a": entry(2, 0, [2])}, b"xx"),
    "a negative start": ({"a": entry(-1, 1, [2])}, b"x"),
    "two negative dimensions": ({"a": entry(0, 1, [-1, -1])}, b"x"),
    "a shape that is larger": ({"a": entry(0, 1, [2])}, b"x"),
    "a shape that is smaller": ({"a": entry(0, 2, [1])}, b"xx"),
    "a huge shape": ({"a": entry(0, 1, [2**60, 2**60])}, b"x"),
    "a huge shape with a zero": ({"a": entry(0, 0, [2**60, 0])}, b""),
    "many axes": ({"a": entry(0, 1, [1] * 65)}, b"x"),
    "another item size": ({"a": entry(0, 1, [1], "F32")}, b"x"),
    "an unknown dtype": ({"a": entry(0, 1, [1], "PICKLE")}, b"x"),
    "a dtype that is a list": ({"a": entry(0, 1, [1], ["U8"])}, b"x"),
    "a complex dtype": ({"a": entry(0, 8, [1], "C64")}, b"x" * 8),
    "a float offset": ({"a": entry(0, 1.5, [1])}, b"x"),
    "a whole float": ({"a": entry(0, 1.0, [1])}, b"x"),
    "a float dimension": ({"a": entry(0, 1, [1.2])}, b"x"),
    "infinity": ({"a": entry(0, 1, [float("inf")])}, b"x"),
    "not a number": ({"a": entry(0, 1, [float("nan")])}, b"x"),
    "numbers as text": ({"a": entry("0", "1", ["1"])}, b"x"),
    "digits of another script": ({"a": entry(0, 1, ["\u0661"])}, b"x"),
    "booleans": ({"a": entry(False, True, [True])}, b"x"),
    "a shape as text": ({"a": entry(0, 1, "1")}, b"x"),
    "a shape as an object": ({"a": entry(0, 1, {"1": 1})}, b"x"),
    "three offsets": ({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 1]}}, b"x"),
    "no offsets": ({"a": {"dtype": "U8", "shape": [1]}}, b"x"),
    "an entry that is null": ({"a": None}, b""),
    "a list": ([], b""),
    "a number": (b"7", b""),
    "no JSON": (b"{", b""),
    "an empty header": (b"", b""),
    "UTF-16": ('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'.encode("utf-16"), b"x"),
    "not UTF-8": (b'{"\xff":{}}', b""),
    "a name twice": (
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        b"x",
    ),
    "a field twice": (b'{"a":{"dtype":"U8","shape":[9],"shape":[1],"data_offsets":[0,1]}}', b"x"),
    "deep lists": (b"[" * 100_000 + b"]" * 100_000, b""),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, b""),
    "a number of five thousand digits": (
        b'{"a":{"dtype":"U8","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,1]}}',
        b"x",
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_must_account_for_every_byte_exactly_once(name: str, folder: Path) -> None:
    put(folder, *HEADERS[name])
    with pytest.raises(StateError, match=r"arrays\.safetensors"):
        summarise_state(folder)


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 7, b"\0" * 8, b"\xff" * 8, b"\xff" * 7 + b"\x7f", b"\x03\0\0\0\0\0\0\0{}"]
)
def test_a_broken_length_is_refused(content: bytes, folder: Path) -> None:
    (folder / "arrays.safetensors").write_bytes(content)
    with pytest.raises(StateError, match="malformed header"):
        summarise_state(folder)


def test_a_header_over_the_limit_is_not_read(folder: Path) -> None:
    put(folder, b"{" + b" " * (5 << 20) + b"}")
    with pytest.raises(StateError, match="malformed header"):
        summarise_state(folder)


LONG_NUMBERS = b"[" + b",".join([b"9" * 4000] * 1000) + b"]"


@pytest.mark.parametrize(
    "header",
    [
        b'{"a":{"dtype":"U8","shape":' + LONG_NUMBERS + b',"data_offsets":[0,1]}}',
        b'{"a":{"dtype":"U8","shape":[1],"data_offsets":' + LONG_NUMBERS + b"}}",
        b'{"a":{"dtype":"U8","shape":[' + b"1," * 2_000_000 + b'1],"data_offsets":[0,1]}}',
        b"{" + b",".join(b'"%x":{}' % i for i in range(200_000)) + b"}",
    ],
    ids=["long numbers", "long offsets", "many axes", "many entries"],
)
def test_the_worst_header_takes_no_time(header: bytes, folder: Path) -> None:
    """The product of a thousand numbers of 4,000 digits alone would take a minute."""
    put(folder, header, b"x")
    start = time.process_time()
    with pytest.raises(StateError):
        summarise_state(folder)
    assert time.process_time() - start < 5


WORDS = ["a", "b", "__metadata__", "dtype", "shape", "data_offsets"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    header=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["U8", "F32", "1", ""]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["a", "b", "__metadata__", "dtype", "shape", "data_offsets"]), inner, max_size=4
            )
        ),
    ),
    body=st.binary(max_size=9),
)
def test_any_header_is_counted_or_refused(header: Any, body: bytes, folder: Path) -> None:
    put(folder, header, body)
    try:
        summary = summarise_state(folder)
    except StateError:
        return
    assert summary.elements <= len(body)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["state.pkl", "arrays.npy", "state.json.bak", ".safetensors", "safetensors"])
def test_other_files_are_refused(name: str, folder: Path) -> None:
    (folder / name).write_bytes(b"x")
    with pytest.raises(StateError, match=r"The state holds"):
        summarise_state(folder)


@pytest.mark.parametrize("name", ["x.safetensors", "state.json"])
@pytest.mark.parametrize("kind", ["link", "broken link", "folder", "pipe"])
def test_what_is_no_regular_file_is_refused_unread(name: str, kind: str, folder: Path, tmp_path_factory: Any) -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret"
    elsewhere.write_text('{"state":1}')
    make: dict[str, Callable[[], None]] = {
        "link": lambda: path.symlink_to(elsewhere),
        "broken link": lambda: path.symlink_to(elsewhere.parent / "none"),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
    }
    make[kind]()
    with pytest.raises(StateError, match="not a regular file"):
        summarise_state(folder)


def test_a_state_needs_its_skeleton(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"no state\.json"):
        summarise_state(tmp_path)


def test_the_skeleton_is_bounded_and_not_parsed(folder: Path) -> None:
    (folder / "state.json").write_bytes(b"[" * 1000)
    assert summarise_state(folder).elements == 0
    with (folder / "state.json").open("wb") as stream:
        stream.truncate((16 << 20) + 1)
    with pytest.raises(StateError, match="exceeds"):
        summarise_state(folder)


def test_the_number_of_files_is_bounded(folder: Path) -> None:
    for index in range(255):
        put(folder, {}, name=f"{index}.safetensors")
    assert summarise_state(folder).files == 256
    put(folder, {}, name="one-more.safetensors")
    with pytest.raises(StateError, match="limit is 256"):
        summarise_state(folder)


# --- arrays -----------------------------------------------------------------------------------------------------------


FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
FLOATS = hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0), elements=FINITE)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(array=FLOATS)
def test_an_array_comes_back_and_numpy_can_read_it(array: np.ndarray, tmp_path: Path) -> None:
    write_array(array, tmp_path / "x.npy")
    np.testing.assert_array_equal(read_array(tmp_path / "x.npy", array.shape), array)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), array)


def test_the_header_is_the_one_that_numpy_writes(tmp_path: Path) -> None:
    for shape in [(), (0,), (3,), (2, 3), (10_000, 1), (1, 2, 3)]:
        np.save(tmp_path / "x.npy", np.zeros(shape, "<f4"))
        assert (tmp_path / "x.npy").read_bytes().startswith(npy_header("<f4", shape))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.int64).reshape(3, 4),
        np.asfortranarray(np.eye(3)),
        np.eye(4)[::2, ::-1],
        np.eye(3, dtype=">f8"),
    ],
)
def test_any_layout_is_written_in_c_order(array: np.ndarray, tmp_path: Path) -> None:
    write_array(array, tmp_path / "x.npy")
    np.testing.assert_array_equal(read_array(tmp_path / "x.npy", array.shape), array)


GOOD = np.arange(6, dtype="<f4").reshape(2, 3)
BODY = GOOD.tobytes()
TRICKS = {
    "empty": b"",
    "no header": BODY,
    "short": npy_header("<f4", (2, 3)) + BODY[:-1],
    "long": npy_header("<f4", (2, 3)) + BODY + b"x",
    "transposed": npy_header("<f4", (3, 2)) + BODY,
    "flat": npy_header("<f4", (6,)) + BODY,
    "an axis more": npy_header("<f4", (1, 2, 3)) + BODY,
    "integers": npy_header("<i4", (2, 3)) + BODY,
    "big-endian": npy_header(">f4", (2, 3)) + BODY,
    "double": npy_header("<f8", (2, 3)) + GOOD.astype("<f8").tobytes(),
    "objects": npy_header("<f4", (2, 3)).replace(b"'<f4'", b"'|O' ") + BODY,
    "Fortran order": npy_header("<f4", (2, 3)).replace(b"False", b"True ") + BODY,
    "version 2": npy_header("<f4", (2, 3)).replace(b"\x01\x00", b"\x02\x00", 1) + BODY,
    "an expression": npy_header("<f4", (2, 3)).replace(b"(2, 3)", b"(1+1,3)")[:-1] + b"\n" + BODY,
    "NaN": npy_header("<f4", (2, 3)) + BODY[:-4] + np.float32(np.nan).tobytes(),
    "infinity": npy_header("<f4", (2, 3)) + BODY[:-4] + np.float32(-np.inf).tobytes(),
    "a pickle": b"\x80\x04." + b"x" * 149,
    "a zip": b"PK\x03\x04" + b"x" * 148,
}


@pytest.mark.parametrize("name", TRICKS)
def test_an_array_is_read_only_with_the_header_that_was_expected(name: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.npy"
    path.write_bytes(npy_header("<f4", (2, 3)) + BODY)
    assert read_array(path, (2, 3)).tolist() == GOOD.tolist()
    path.write_bytes(TRICKS[name])
    with pytest.raises(ProtocolError, match=r"scores\.npy"):
        read_array(path, (2, 3))


def test_an_array_that_is_missing_a_link_a_pipe_or_a_folder_is_not_read(tmp_path: Path) -> None:
    write_array(GOOD, tmp_path / "real.npy")
    (tmp_path / "link").symlink_to(tmp_path / "real.npy")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("none", "link", "folder", "pipe"):
        with pytest.raises(ProtocolError, match="was not written"):
            read_array(tmp_path / name, (2, 3))
