"""The bounded conversation, apart from any process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.errors import LearnerError
from suite.protocol import DescribeParams
from suite.protocol.limits import MAX_FRAME_BYTES, MAX_NOTIFICATIONS_PER_SECOND
from suite.sandbox.channel import Channel, EndedError
from suite.status import Status

NOTE = {"jsonrpc": "2.0", "method": "progress", "params": {"epoch": 1}}


def line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def ok(number: int) -> bytes:
    return line({"jsonrpc": "2.0", "id": number, "result": {"n": number}})


def ask(channel: Channel, reply: Callable[[bytes], None], seconds: float = 5.0, **kwargs: Any) -> Any:
    """Ask; `reply` gets the request as sent and answers from within `send`."""
    response = channel.ask(
        "describe", DescribeParams(), seconds, lambda data, _deadline: reply(data), kwargs.get("on_note")
    )
    return response.result


def test_requests_are_numbered_and_written_as_one_line() -> None:
    channel, sent = Channel(), []

    def reply(data: bytes) -> None:
        sent.append(data)
        channel.receive(ok(len(sent)), time.monotonic())

    assert [ask(channel, reply), ask(channel, reply)] == [{"n": 1}, {"n": 2}]
    assert [json.loads(data)["id"] for data in sent] == [1, 2]
    assert all(data.endswith(b"\n") and data.count(b"\n") == 1 for data in sent)


@given(st.lists(st.integers(1, 40), max_size=30))
def test_an_answer_is_read_however_it_is_cut(cuts: list[int]) -> None:
    channel, data = Channel(), line(NOTE) + ok(1)
    notes: list[Any] = []

    def reply(_: bytes) -> None:
        rest = data
        for cut in cuts:
            channel.receive(rest[:cut], time.monotonic())
            rest = rest[cut:]
        channel.receive(rest, time.monotonic())

    assert ask(channel, reply, on_note=lambda note, at: notes.append(note)) == {"n": 1}
    assert [note.params.epoch for note in notes] == [1]


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    channel = Channel()
    channel.receive(data, time.monotonic())
    channel.end()
    with pytest.raises((LearnerError, EndedError)):
        ask(channel, lambda _: None)


@pytest.mark.parametrize("data", [ok(1), ok(7), line({**NOTE, "id": 1}), b"\n", b"x" * (MAX_FRAME_BYTES + 1)])
def test_what_is_said_out_of_turn_is_a_breach_for_good(data: bytes) -> None:
    channel = Channel()
    channel.receive(data, time.monotonic())
    channel.receive(line(NOTE), time.monotonic())
    for _ in range(2):
        with pytest.raises(LearnerError) as caught:
            channel.check()
        assert caught.value.status is Status.PROTOCOL_ERROR
    with pytest.raises(LearnerError):
        ask(channel, lambda _: channel.receive(ok(1), time.monotonic()))


def test_notes_between_requests_are_dropped() -> None:
    channel, notes = Channel(), []
    channel.receive(line(NOTE), time.monotonic())
    ask(channel, lambda _: channel.receive(ok(1), time.monotonic()), on_note=lambda *note: notes.append(note))
    channel.check()
    assert notes == []


def test_a_burst_of_notes_passes_and_a_flood_does_not() -> None:
    now = time.monotonic()
    channel = Channel(started=now)
    for _ in range(10 * MAX_NOTIFICATIONS_PER_SECOND):
        channel.receive(line(NOTE), now)
    channel.check()
    for second in range(1, 4):  # the sustained rate goes on passing
        for _ in range(MAX_NOTIFICATIONS_PER_SECOND):
            channel.receive(line(NOTE), now + second)
    channel.check()
    channel.receive(line(NOTE), now + 3)
    with pytest.raises(LearnerError, match="notifications a second"):
        channel.check()


def test_an_answer_that_arrived_after_the_deadline_is_late_even_if_it_is_there() -> None:
    channel = Channel()
    with pytest.raises(LearnerError) as caught:
        ask(channel, lambda _: channel.receive(ok(1), time.monotonic() + 60))
    assert caught.value.status is Status.TIMED_OUT


def test_a_late_answer_is_a_breach_at_the_next_request() -> None:
    channel = Channel()
    with pytest.raises(LearnerError):
        ask(channel, lambda _: None, seconds=0.01)
    channel.receive(ok(1), time.monotonic())
    with pytest.raises(LearnerError, match="not waiting"):
        channel.check()


def test_an_answer_just_before_the_end_counts() -> None:
    channel = Channel()

    def reply(_: bytes) -> None:
        channel.receive(ok(1), time.monotonic())
        channel.end()

    assert ask(channel, reply) == {"n": 1}
    with pytest.raises(EndedError):
        ask(channel, lambda _: None)


def test_waiting_ends_when_another_thread_sees_the_end() -> None:
    channel = Channel()
    threading.Timer(0.05, channel.end).start()
    started = time.monotonic()
    with pytest.raises(EndedError):
        ask(channel, lambda _: None, seconds=30)
    assert time.monotonic() - started < 5
