"""Hypothesis without a per-example deadline: a loaded machine is not a defect of the code under test."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
