"""Starts a learner somewhere and talks to it: Docker, a plain process, or this process."""

from __future__ import annotations

from suite.sandbox.interface import Cell, Identity, Inside, Isolation, Launch, Limits, NoteHandler, Sandbox, Usage

__all__ = ["Cell", "Identity", "Inside", "Isolation", "Launch", "Limits", "NoteHandler", "Sandbox", "Usage"]
