"""Starts a learner somewhere and talks to it: the interface, and its Docker, process and in-memory runtimes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from suite.sandbox.interface import (
    GIB,
    MIB,
    Cell,
    Identity,
    Inside,
    Isolation,
    Launch,
    Limits,
    NoteHandler,
    Sandbox,
    Usage,
)
from suite.sandbox.opening import SandboxName, open_sandbox

if TYPE_CHECKING:
    from suite.sandbox.memory import MemorySandbox, Step
    from suite.sandbox.spares import Spares
    from suite.sandbox.warmup import warm_up

__all__ = [
    "GIB",
    "MIB",
    "Cell",
    "Identity",
    "Inside",
    "Isolation",
    "Launch",
    "Limits",
    "MemorySandbox",
    "NoteHandler",
    "Sandbox",
    "SandboxName",
    "Spares",
    "Step",
    "Usage",
    "open_sandbox",
    "warm_up",
]

_LATER = {
    "MemorySandbox": "suite.sandbox.memory",
    "Spares": "suite.sandbox.spares",
    "Step": "suite.sandbox.memory",
    "warm_up": "suite.sandbox.warmup",
}


def __getattr__(name: str) -> Any:
    """Import what is heavier than the interface when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
