"""Calls to one cell: the error that ends it is found once, and raised again by whatever is asked of it later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from suite.errors import LearnerError, SuiteError
from suite.protocol import Method, Params
from suite.sandbox.channel import EndedError
from suite.sandbox.interface import NoteHandler
from suite.sandbox.pump import Conversation
from suite.sandbox.verdicts import result_of, with_tail
from suite.status import Status


class Calls:
    """What the Docker and the process runtime do alike when they ask a learner."""

    def __init__(
        self,
        talk: Conversation,
        kill: Callable[[], None],
        autopsy: Callable[[], SuiteError],
        second_look: Callable[[LearnerError], SuiteError],
    ) -> None:
        """`kill` ends the learner; `autopsy` says why one ended by itself, which may take seconds; `second_look` may
        find another cause for what looks like a crash (a full disk, a lost GPU)."""
        self._talk = talk
        self._kill = kill
        self._autopsy = autopsy
        self._second_look = second_look
        self._error: SuiteError | None = None
        self.is_paused = False
        self.is_closed = False

    def ask(self, method: Method, params: Params, seconds: float, on_note: NoteHandler | None) -> dict[str, Any]:
        """See `Cell.call`."""
        self.check()
        if self.is_closed or self.is_paused:
            raise RuntimeError("the cell is closed" if self.is_closed else "the cell is paused: resume it first")
        try:
            response = self._talk.ask(method, params, seconds, on_note)
        except EndedError:
            self.fail(self._autopsy())
        except LearnerError as error:
            self.fail(error)
        try:
            return result_of(response, method)
        except LearnerError as error:
            raise self._blamed(error) from None

    def check(self) -> None:
        """Raise the error that ended the cell, or the breach of the protocol that was seen since."""
        if self._error is not None:
            raise self._error
        self._talk.check()

    def fail(self, error: SuiteError) -> NoReturn:
        """End the cell: it is killed, and `error` is raised, now and by every later call."""
        self._error = self._blamed(error)
        self._talk.close()
        self._kill()
        raise self._error

    def _blamed(self, error: SuiteError) -> SuiteError:
        if isinstance(error, LearnerError) and error.status is Status.CRASHED:
            error = self._second_look(error)
        return with_tail(error, self._talk.log_tail()) if isinstance(error, LearnerError) else error
