"""Lines and JSON objects: whatever arrives, bounded in memory and time, and nothing but ProtocolError comes out."""

from __future__ import annotations

import contextlib
import json
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suite.protocol import LineReader, ProtocolError, Response, decode, encode
from suite.protocol.limits import MAX_DEPTH, MAX_DIGITS, MAX_FRAME_BYTES

MIB = 1 << 20


# --- lines ------------------------------------------------------------------------------------------------------------


@given(lines=st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=8), data=st.data())
def test_any_chunking_gives_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines) + b"unfinished"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    reader = LineReader(limit=64)
    found: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[start:end])
    assert found == lines
    assert reader.pending == len(b"unfinished")


@given(length=st.integers(0, 40), chunk=st.integers(1, 50))
def test_a_line_may_have_the_limit_with_its_newline_and_not_a_byte_more(length: int, chunk: int) -> None:
    stream, reader = b"x" * length + b"\n", LineReader(limit=20)
    found: list[bytes] = []
    try:
        for start in range(0, len(stream), chunk):
            found += reader.feed(stream[start : start + chunk])
    except ProtocolError:
        assert len(stream) > 20
    else:
        assert len(stream) <= 20
        assert found == [b"x" * length]


def flood(reader: LineReader) -> None:
    for _ in range(1000):
        list(reader.feed(b"x" * 65536))


def test_a_line_that_never_ends_is_refused_before_it_is_held() -> None:
    reader = LineReader()
    tracemalloc.start()
    with pytest.raises(ProtocolError, match="exceeds the limit"):
        flood(reader)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reader.pending < MAX_FRAME_BYTES
    assert peak < 3 * MAX_FRAME_BYTES


def test_what_may_be_sent_may_be_received() -> None:
    message = Response(id=1, result={"a": "x" * (MAX_FRAME_BYTES - 43)})
    line = encode(message)
    assert len(line) == MAX_FRAME_BYTES
    assert list(LineReader().feed(line)) == [line[:-1]]
    with pytest.raises(ProtocolError, match="exceeds the limit"):
        encode(Response(id=1, result={"a": "x" * (MAX_FRAME_BYTES - 42)}))


# --- objects ----------------------------------------------------------------------------------------------------------


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def depth(value: Any) -> int:
    if isinstance(value, dict | list):
        return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0


@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans())
def test_an_object_comes_out_as_it_was_sent(value: dict[str, Any], is_ascii: bool) -> None:
    try:
        line = json.dumps(value, ensure_ascii=is_ascii).encode()
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8
        return
    if depth(value) <= MAX_DEPTH:
        assert decode(line) == value


@given(st.binary(max_size=200))
@example(b"")
@example(b"{}\r")
@example(b"\xef\xbb\xbf{}")
@example('{"a": 1}'.encode("utf-16"))
@example(b'{"a":"\xed\xa0\x80"}')
def test_arbitrary_bytes_give_an_object_or_a_protocol_error(line: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        assert isinstance(decode(line), dict)


@given(st.lists(st.sampled_from([*'[]{}",:\\0123456789eE.-+tfn \n', "NaN", "null", '"a":', "1e999"]), max_size=60))
def test_arbitrary_syntax_gives_an_object_or_a_protocol_error(parts: list[str]) -> None:
    with contextlib.suppress(ProtocolError):
        assert isinstance(decode("".join(parts).encode()), dict)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'"a"',
        b"1",
        b"null",
        b"{} {}",
        b'{"a":1,}',
        b"{'a':1}",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":1e400}',
        b'{"a":-1e400}',
        b'{"a":1,"a":2}',
        b'{"b":{"a":1,"\\u0061":2}}',
        b'{"a":"\xff"}',
        b'{"a":01}',
        b'\xef\xbb\xbf{"a":1}',
    ],
)
def test_what_is_not_one_json_object_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(line)


@pytest.mark.parametrize("pair", [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_bounded(pair: tuple[bytes, bytes]) -> None:
    def nested(levels: int) -> bytes:
        return b'{"a":' + pair[0] * levels + b"1" + pair[1] * levels + b"}"

    assert depth(decode(nested(MAX_DEPTH - 1))) == MAX_DEPTH
    with pytest.raises(ProtocolError, match="nested deeper"):
        decode(nested(MAX_DEPTH))


def test_numbers_are_bounded() -> None:
    assert decode(b'{"a":' + b"9" * MAX_DIGITS + b"}") == {"a": 10**MAX_DIGITS - 1}
    for number in (b"9" * (MAX_DIGITS + 1), b"1." + b"3" * (MAX_DIGITS + 1), b"1e" + b"0" * MAX_DIGITS + b"1"):
        with pytest.raises(ProtocolError, match="digits"):
            decode(b'{"a":' + number + b"}")


@pytest.mark.parametrize("text", ["[" * 100, "{" * 100, "9" * 100, '\\"' + "[" * 100, "\\\\", '\\\\\\"' + "9" * 100])
def test_what_stands_in_a_string_is_text(text: str) -> None:
    line = b'{"a":"' + text.encode() + b'","b":[]}'
    assert decode(line)["a"] == json.loads(f'"{text}"')


def test_brackets_after_a_string_that_ends_in_an_escaped_backslash_count() -> None:
    with pytest.raises(ProtocolError, match="nested deeper"):
        decode(b'{"a":"\\\\","b":' + b"[" * 40)


N = MIB - 20
HOSTILE = {
    "one long string": b'{"a":"' + b"x" * N + b'"}',
    "a string without an end": b'{"a":"' + b"x" * N,
    "escaped backslashes": b'{"a":"' + b"\\\\" * (N // 2) + b'"}',
    "escaped quotes, no end": b'{"a":"' + b'\\"' * (N // 2) + b"\\",
    "quotes": b'"' * N,
    "backslashes": b"\\" * N,
    "quotes and backslashes": b'"\\' * (N // 2),
    "flat brackets": b'{"a":[' + b"[]," * (N // 3) + b"[]]}",
    "opening brackets": b"[" * N,
    "closing brackets": b"]" * N,
    "digits": b'{"a":' + b"1" * N + b"}",
    "longest numbers": b'{"a":[' + (b"1" * MAX_DIGITS + b",") * (N // (MAX_DIGITS + 1)) + b"1]}",
    "short floats": b'{"a":[' + b"1e9," * (N // 4) + b"1]}",
    "spaces": b"{" + b" " * N + b"}",
    "non-ASCII": b'{"a":"' + "\U0001f600".encode() * (N // 4) + b'"}',
    "keys": b"{" + b",".join(b'"%d":0' % i for i in range(N // 11)) + b"}",
}


def seconds(line: bytes) -> float:
    start = time.process_time()
    with contextlib.suppress(ProtocolError):
        decode(line)
    return time.process_time() - start


@pytest.mark.parametrize("name", HOSTILE)
def test_the_longest_line_takes_no_more_than_linear_time(name: str) -> None:
    """A quadratic step would take minutes at this length; the fastest of three is compared with a generous bound."""
    assert min(seconds(HOSTILE[name]) for _ in range(3)) < 2.0


@pytest.mark.parametrize("name", ["one long string", "quotes", "escaped backslashes"])
def test_checking_the_structure_takes_little_memory(name: str) -> None:
    tracemalloc.start()
    with contextlib.suppress(ProtocolError):
        decode(HOSTILE[name])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 80 * MIB
