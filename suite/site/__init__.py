"""The static leaderboard: builder, templates, static files."""

from __future__ import annotations

from suite.site.builder import build

__all__ = ["build"]
