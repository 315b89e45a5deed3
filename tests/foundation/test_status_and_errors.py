"""The vocabulary of outcomes, and the error tree."""

from __future__ import annotations

import inspect

import pytest

import suite.errors
from suite.errors import ImageError, LearnerError, SuiteError, TrackError
from suite.protocol import Code
from suite.sandbox.verdicts import result_of
from suite.status import Status

FAILURES = {
    "diverged",
    "timed_out",
    "out_of_memory",
    "state_too_large",
    "batch_dependent",
    "crashed",
    "protocol_error",
}


def test_the_vocabulary_is_closed() -> None:
    assert {s.value for s in Status} == FAILURES | {"ok", "infrastructure", "interrupted"}


@pytest.mark.parametrize("status", Status)
def test_an_outcome_is_fine_or_the_learners_or_the_machines(status: Status) -> None:
    assert status.counts_as_failure == (status.value in FAILURES)
    assert status.is_retried == (status.value in {"infrastructure", "interrupted"})
    assert not (status.counts_as_failure and status.is_retried)


@pytest.mark.parametrize("status", Status)
def test_every_outcome_can_be_shown(status: Status) -> None:
    look = status.look
    assert look.text
    assert look.colour in {"green", "yellow", "red"}
    assert (look.severity == 0) == (status is Status.OK)
    assert (look.severity == 3) == status.counts_as_failure


def tree() -> list[type[SuiteError]]:
    return [
        c
        for c in vars(suite.errors).values()
        if inspect.isclass(c) and issubclass(c, SuiteError) and c is not SuiteError
    ]


def test_codes_are_unique_and_exit_codes_leave_the_shells_alone() -> None:
    assert len({c.code for c in tree()}) == len(tree())
    assert {c.exit_code for c in tree()} <= {3, 4, 5, 6, 7, 130}
    assert suite.errors.EXIT_ENTRY_FAILED not in {c.exit_code for c in tree()} | {0, 1, 2}


def test_the_drawing_names_every_error_with_its_exit_code() -> None:
    lines = (suite.errors.__doc__ or "").splitlines()
    for error in tree():
        line = next(line for line in lines if error.__name__ in line.replace(",", " ").split())
        assert f"exit {error.exit_code}" in line


def test_an_error_says_what_is_wrong_and_what_to_do() -> None:
    error = TrackError("There is no track 'x'.", "`suite track list` shows them all.")
    assert str(error) == "There is no track 'x'. `suite track list` shows them all."
    assert str(TrackError("Only this.")) == "Only this."


def test_a_learners_error_carries_the_status_to_record() -> None:
    error = LearnerError(Status.DIVERGED, "NaN.", log_tail="epoch 3")
    assert (error.status, error.log_tail) == (Status.DIVERGED, "epoch 3")
    assert ImageError("No image.").status is Status.PROTOCOL_ERROR


def test_every_error_code_of_the_protocol_has_a_status() -> None:
    from suite.protocol import Response, RpcError

    for name, code in vars(Code).items():
        if name.isupper():
            with pytest.raises(LearnerError) as caught:
                result_of(Response(id=1, error=RpcError(code=code, message="x")), "learn")
            assert caught.value.status.counts_as_failure
            if name.lower() in FAILURES:
                assert caught.value.status == name.lower()
