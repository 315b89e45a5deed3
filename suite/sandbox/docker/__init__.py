"""Learners in Docker containers: strict isolation (G6), and gVisor where the engine offers it."""

from __future__ import annotations

from suite.sandbox.docker.sandbox import DockerSandbox

__all__ = ["DockerSandbox"]
