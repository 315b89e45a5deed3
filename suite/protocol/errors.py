"""The root of the error tree, and its branch for everything that travels on the wire.

The rest of the tree is drawn in `suite.errors`; this file is apart because containers carry it too.
"""

from __future__ import annotations

from typing import ClassVar


class SuiteError(Exception):
    """Something the user can understand and mend: what is wrong, and what to do about it."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class ProtocolError(SuiteError):
    """A frame, message or output breaks the learner protocol."""

    code = "protocol"
    exit_code = 5


class SpaceError(SuiteError):
    """A hyperparameter space, or a point said to lie in it, is malformed."""

    code = "space"
    exit_code = 3


class StateError(SuiteError):
    """A state tree holds something that may not be carried, or its files are malformed."""

    code = "state"
    exit_code = 5


class StateTooLargeError(StateError):
    """There is no room for a state where it must be written."""

    code = "state_too_large"
