"""A conversation with one learner, apart from how its bytes travel: requests out, answers and notifications in.

One thread feeds what arrives (`receive`, `end`), another asks (`ask`). Whatever arrives is hostile until it has passed
the bounds of `suite.protocol`: the first breach is kept as the channel's fault, and nothing after it is looked at.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, SerializeAsAny, ValidationError

from suite.errors import LearnerError
from suite.protocol import (
    NOTE,
    LineReader,
    Method,
    Params,
    ProgressNote,
    ProtocolError,
    Response,
    StageNote,
    decode,
    encode,
)
from suite.protocol.limits import MAX_NOTIFICATIONS_PER_SECOND
from suite.sandbox.interface import NoteHandler
from suite.sandbox.text import quote
from suite.status import Status

Send = Callable[[bytes, float], None]
"""Sends bytes until a deadline of the monotonic clock; raises TimeoutError when the peer does not take them."""

_BURST_SECONDS = 10


class EndedError(Exception):
    """The stream ended before the answer: the cell knows why."""


class _Request(BaseModel):
    jsonrpc: Literal["2.0"] = "2.0"
    id: int
    method: str
    params: SerializeAsAny[BaseModel]


class Channel:
    """Requests are numbered from 1. All times are of `time.monotonic`."""

    def __init__(self, started: float | None = None) -> None:
        self._changed = threading.Condition()
        self._lines = LineReader()
        self._tokens = float(_BURST_SECONDS * MAX_NOTIFICATIONS_PER_SECOND)
        self._filled = time.monotonic() if started is None else started
        self._last_id = 0
        self._awaited: int | None = None
        self._answer: tuple[Response, float] | None = None
        self._notes: deque[tuple[ProgressNote | StageNote, float]] = deque()
        self._fault = ""
        self._has_ended = False

    # --- the reading side -------------------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> None:
        """Take bytes that arrived at `now`. Never raises: a breach becomes the fault that `ask` and `check` raise."""
        with self._changed:
            if not self._fault:
                try:
                    # The whole chunk is looked at before anyone wakes, so that a second answer in it is seen in time.
                    for line in self._lines.feed(data):
                        self._take(decode(line), now)
                except ProtocolError as error:
                    self._fault = error.message
            self._changed.notify_all()

    def end(self) -> None:
        """Nothing more will arrive."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _take(self, message: dict[str, Any], now: float) -> None:
        if "method" in message:
            self._take_note(message, now)
            return
        try:
            response = Response.model_validate(message)
        except ValidationError as error:
            raise ProtocolError(f"An answer is malformed: {explain(error)}") from error
        if (response.result is None) == (response.error is None):
            raise ProtocolError("An answer must have either a result or an error.")
        if response.id is None and response.error is not None:
            raise ProtocolError(f"The learner could not read a request: {quote(response.error.message)}")
        if self._awaited is None or response.id != self._awaited:
            raise ProtocolError(f"The learner answered request {response.id}, which was not waiting for an answer.")
        self._awaited, self._answer = None, (response, now)

    def _take_note(self, message: dict[str, Any], now: float) -> None:
        rate, burst = MAX_NOTIFICATIONS_PER_SECOND, _BURST_SECONDS * MAX_NOTIFICATIONS_PER_SECOND
        self._tokens = min(burst, self._tokens + rate * (now - self._filled)) - 1
        self._filled = now
        if self._tokens < 0:
            raise ProtocolError(f"The learner sends more than {rate} notifications a second.")
        try:
            note = NOTE.validate_python(message)
        except ValidationError as error:
            raise ProtocolError(f"A notification is malformed: {explain(error)}") from error
        if self._awaited is not None:  # between requests nobody listens
            self._notes.append((note, now))

    # --- the asking side --------------------------------------------------------------------------------------------

    def ask(self, method: Method, params: Params, seconds: float, send: Send, on_note: NoteHandler | None) -> Response:
        """Send a request and wait for its answer; `on_note` is called in this thread, in order of arrival.

        Raises LearnerError TIMED_OUT when the answer does not arrive within `seconds`, PROTOCOL_ERROR for a breach of
        the protocol, and EndedError when the stream ends first.
        """
        deadline = time.monotonic() + seconds
        with self._changed:
            self._raise_fault()
            self._last_id += 1
            self._awaited, self._answer = self._last_id, None
            self._notes.clear()
        try:
            send(encode(_Request(id=self._last_id, method=method, params=params)), deadline)
            return self._wait(deadline, on_note)
        except TimeoutError:
            raise LearnerError(
                Status.TIMED_OUT, f"The learner did not answer {method!r} within {seconds:g} s."
            ) from None
        finally:
            with self._changed:
                self._awaited = None

    def _wait(self, deadline: float, on_note: NoteHandler | None) -> Response:
        while True:
            with self._changed:
                self._changed.wait_for(self._has_news, max(0.0, deadline - time.monotonic()))
                notes, self._notes = self._notes, deque()
                answer, has_ended = self._answer, self._has_ended
            for note, arrived in notes:
                if on_note is not None:
                    on_note(note, arrived)
            self.check()
            if answer is not None:
                if answer[1] > deadline:
                    raise TimeoutError
                return answer[0]
            if has_ended:
                raise EndedError
            if time.monotonic() >= deadline:
                raise TimeoutError

    def _has_news(self) -> bool:
        return bool(self._notes or self._answer or self._fault or self._has_ended)

    def check(self) -> None:
        """Raise LearnerError PROTOCOL_ERROR if the learner has broken the protocol, at whatever time."""
        with self._changed:
            self._raise_fault()

    def _raise_fault(self) -> None:
        if self._fault:
            raise LearnerError(Status.PROTOCOL_ERROR, self._fault)


def explain(error: ValidationError) -> str:
    """The first complaint of pydantic about a learner's message, fit to be shown."""
    first = error.errors(include_input=False, include_url=False)[0]
    return quote(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
