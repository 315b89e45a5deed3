"""The part of a cell's life before any data: start, `describe`, `setup`, all within one limit of time."""

from __future__ import annotations

import time

from pydantic import ValidationError

from suite.errors import ImageError, LearnerError, ProtocolError
from suite.protocol import RESULTS, DescribeParams, Manifest, SetupParams
from suite.sandbox.channel import explain
from suite.sandbox.interface import Cell, Launch, Sandbox
from suite.sandbox.verdicts import with_tail
from suite.seeds import canonical_json
from suite.status import Status


def warm_up(sandbox: Sandbox, launch: Launch, manifest: Manifest, setup: SetupParams) -> tuple[Cell, float]:
    """A cell that is set up and paused, and the seconds that it took from its start to its answer to `setup`.

    Raises LearnerError: PROTOCOL_ERROR unless it describes itself exactly as `manifest`, TIMED_OUT when all of it takes
    longer than `limits.setup_seconds`. Nothing is left behind then.
    """
    started = time.monotonic()
    cell = sandbox.start(launch)
    try:
        _set_up(cell, manifest, setup, started + launch.limits.setup_seconds)
        seconds = time.monotonic() - started
        cell.pause()
    except LearnerError as error:
        with_tail(error, cell.log_tail())
        cell.close()
        raise
    except BaseException:
        cell.close()
        raise
    return cell, seconds


def _set_up(cell: Cell, manifest: Manifest, setup: SetupParams, deadline: float) -> None:
    described = read_manifest(cell.call("describe", DescribeParams(), max(0.0, deadline - time.monotonic())))
    if canonical_json(described.model_dump(mode="json")) != canonical_json(manifest.model_dump(mode="json")):
        raise LearnerError(
            Status.PROTOCOL_ERROR,
            "The learner describes itself unlike its image's manifest.",
            "Build the image again with `suite build`.",
        )
    answer = cell.call("setup", setup, max(0.0, deadline - time.monotonic()))
    try:
        RESULTS["setup"].model_validate(answer)
    except ValidationError as error:
        raise LearnerError(Status.PROTOCOL_ERROR, f"The answer to 'setup' is malformed: {explain(error)}") from None


def read_manifest(answer: dict[str, object]) -> Manifest:
    """The manifest in an answer to `describe`. Raises LearnerError PROTOCOL_ERROR if it is malformed."""
    try:
        return Manifest.model_validate(answer)
    except ValidationError as error:
        raise LearnerError(Status.PROTOCOL_ERROR, f"The answer to 'describe' is malformed: {explain(error)}") from None


def manifest_of(sandbox: Sandbox, launch: Launch) -> Manifest:
    """What a learner says of itself, asked in a cell that is thrown away. Raises ImageError when it is no learner."""
    cell = sandbox.start(launch)
    try:
        return read_manifest(cell.call("describe", DescribeParams(), launch.limits.setup_seconds))
    except (LearnerError, ProtocolError) as error:
        if isinstance(error, ImageError):
            raise
        raise ImageError(
            f"{launch.image} is no learner: {error.message}", "Try `suite check`.", cell.log_tail()
        ) from error
    finally:
        cell.close()
