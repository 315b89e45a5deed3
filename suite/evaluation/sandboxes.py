"""The sandbox that a user names."""

from __future__ import annotations

from typing import cast, get_args

from suite.errors import UsageError
from suite.sandbox import SandboxName


def sandbox_name(name: str) -> SandboxName:
    """`name`, if it is a sandbox. Raises UsageError."""
    for known in get_args(SandboxName):
        if known == name:
            return cast("SandboxName", name)
    raise UsageError(f"There is no sandbox {name!r}.", f"Choose one of {', '.join(get_args(SandboxName))}.")
