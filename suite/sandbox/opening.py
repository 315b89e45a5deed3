"""The runtimes by name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from suite.sandbox.interface import Isolation, Sandbox

SandboxName: TypeAlias = Literal["docker", "process", "gvisor"]


def open_sandbox(name: SandboxName, root: Path | None = None) -> Sandbox:
    """A runtime, to be used as a context manager. `root`: where folders of cells are made (temporary files if None);
    best on the file system of the data.

    Raises InfrastructureError when no engine answers, UsageError when it does not offer what is asked.
    """
    if name == "process":
        from suite.sandbox.process import ProcessSandbox

        return ProcessSandbox(root)
    from suite.sandbox.docker import DockerSandbox

    return DockerSandbox(Isolation.GVISOR if name == "gvisor" else Isolation.DOCKER, root)
