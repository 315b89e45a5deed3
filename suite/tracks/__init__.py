"""Track files and their model."""

from __future__ import annotations

from suite.tracks.loader import load_track, parse_track, track_names
from suite.tracks.model import BackboneChoice, Budgets, Evaluation, Track, Tuning

__all__ = [
    "BackboneChoice",
    "Budgets",
    "Evaluation",
    "Track",
    "Tuning",
    "load_track",
    "parse_track",
    "track_names",
]
