"""What a learner's answer or end means for its trial."""

from __future__ import annotations

from typing import Any

from suite.errors import LearnerError
from suite.protocol import Code, Method, Response
from suite.sandbox.text import quote
from suite.status import Status

_STATUSES = {
    Code.CRASHED: Status.CRASHED,
    Code.DIVERGED: Status.DIVERGED,
    Code.OUT_OF_MEMORY: Status.OUT_OF_MEMORY,
    Code.STATE_REFUSED: Status.PROTOCOL_ERROR,
    Code.OUTPUT_REFUSED: Status.PROTOCOL_ERROR,
    Code.STATE_TOO_LARGE: Status.STATE_TOO_LARGE,
    Code.INVALID_PARAMS: Status.PROTOCOL_ERROR,
    Code.INVALID_REQUEST: Status.PROTOCOL_ERROR,
    Code.METHOD_NOT_FOUND: Status.PROTOCOL_ERROR,
    Code.PARSE: Status.PROTOCOL_ERROR,
}


def result_of(response: Response, method: Method) -> dict[str, Any]:
    """The result of an answer. Raises LearnerError with the status that its error code stands for.

    A code that the protocol does not know is a PROTOCOL_ERROR.
    """
    if response.error is None:
        return response.result or {}
    status = _STATUSES.get(response.error.code, Status.PROTOCOL_ERROR)
    error = LearnerError(status, f"The learner answered {method!r} with an error: {quote(response.error.message)}")
    error.rpc_code = response.error.code
    raise error


def crashed(how: str) -> LearnerError:
    """The learner ended before its answer; `how` completes 'The learner ...'."""
    return LearnerError(Status.CRASHED, f"The learner {how} before it answered.", "Its log says more.")


def gone_early() -> LearnerError:
    """The learner answered and ended before its output was taken: an output lives only as long as its learner."""
    return LearnerError(
        Status.CRASHED, "The learner exited before its output was taken.", "Wait for the next request after an answer."
    )


def out_of_memory(limit_bytes: int) -> LearnerError:
    """The learner was killed at its memory limit."""
    return LearnerError(
        Status.OUT_OF_MEMORY,
        f"The learner used more than its {limit_bytes / (1 << 20):.0f} MiB of memory (scratch files count).",
    )


def with_tail(error: LearnerError, log_tail: str) -> LearnerError:
    """`error` carrying the end of the learner's log."""
    error.log_tail = error.log_tail or log_tail
    return error
