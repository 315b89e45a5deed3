"""What runs inside a container: the `Learner` base class and its server loop. `suite.sdk.torch` needs PyTorch."""

from __future__ import annotations

from suite.protocol import Choice, Int, LearnResult, LogUniform, Space, Uniform
from suite.sdk.learner import Context, DivergedError, Learner, Task
from suite.sdk.server import main
from suite.sdk.session import Session

__all__ = [
    "Choice",
    "Context",
    "DivergedError",
    "Int",
    "LearnResult",
    "Learner",
    "LogUniform",
    "Session",
    "Space",
    "Task",
    "Uniform",
    "main",
]
