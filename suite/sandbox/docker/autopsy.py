"""Why a container ended: by its learner's doing, at a limit, or by somebody else's hand."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import docker.errors

from suite.errors import InfrastructureError, SuiteError
from suite.sandbox.docker.connect import Engine, engine_errors
from suite.sandbox.interface import Limits
from suite.sandbox.verdicts import crashed, out_of_memory

_SECONDS = 5.0
_SIGNALLED = 128
_KILLED = 137


def autopsy(engine: Engine, container: str, limits: Limits) -> SuiteError:
    """The error of a container whose streams have ended.

    `OOMKilled` alone proves nothing: it is also true when only a child was killed and the learner went on.
    """
    state = _final_state(engine, container)
    if state is None:
        return InfrastructureError("A learner's container was removed from outside.", "Let the suite alone remove it.")
    if state.get("Running"):
        return InfrastructureError("The Docker engine dropped the connection to a learner.", "See `suite doctor`.")
    code = int(state.get("ExitCode", -1))
    if code == _KILLED and state.get("OOMKilled"):
        return out_of_memory(limits.memory_bytes)
    if code > _SIGNALLED and _was_killed_from_outside(engine, container, state):
        return InfrastructureError("A learner's container was stopped from outside.", "Let the suite alone stop it.")
    return crashed(f"was killed by signal {code - _SIGNALLED}" if code > _SIGNALLED else f"exited with code {code}")


def is_running(engine: Engine, container: str) -> bool:
    """Whether a container runs (or is paused). One that was removed does not."""
    with engine_errors("inspect a container"):
        try:
            return bool(engine.api.inspect_container(container)["State"].get("Running"))
        except docker.errors.NotFound:
            return False


def _final_state(engine: Engine, container: str) -> dict[str, Any] | None:
    """The state once the container has stopped, or after _SECONDS; None when it is gone."""
    deadline = time.monotonic() + _SECONDS
    with engine_errors("inspect a container"):
        while True:
            try:
                state: dict[str, Any] = engine.api.inspect_container(container)["State"]
            except docker.errors.NotFound:
                return None
            if not state.get("Running") or time.monotonic() > deadline:
                return state
            time.sleep(0.02)


def _was_killed_from_outside(engine: Engine, container: str, state: dict[str, Any]) -> bool:
    """Whether the engine was asked to kill it (this suite asks only after the verdict): such signals are events."""
    with engine_errors("list its events"):
        events = engine.api.events(
            since=int(_seconds(state["StartedAt"])),
            until=int(_seconds(state["FinishedAt"])) + 1,
            filters={"container": [container], "event": ["kill", "stop", "destroy"]},
            decode=True,
        )
        return any(True for _ in events)


def _seconds(stamp: str) -> float:
    # The engine writes nanoseconds, which datetime does not read.
    return datetime.fromisoformat(f"{stamp[:19]}+00:00").timestamp()
