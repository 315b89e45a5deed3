"""Bounds on everything that travels; a peer that exceeds one has broken the protocol."""

from __future__ import annotations

MAX_FRAME_BYTES = 1 << 20
"""Longest line on the stream, newline included. Bulk data travel as files."""

MAX_DEPTH = 16
"""Deepest nesting of a message."""

MAX_DIGITS = 40
"""Most digits of one JSON number."""

MAX_NOTIFICATIONS_PER_SECOND = 100
"""Sustained rate of notifications; a burst of ten seconds' worth is let through."""

MAX_TEXT = 2000
"""Longest free text."""

MAX_NAME = 64
"""Longest name of a learner, hyperparameter or metric."""

MAX_METRICS = 64
"""Most free-form metrics in one message."""

MAX_CLASSES = 100_000
"""Most classes in one message."""

MAX_SPACE_DIMENSIONS = 64
"""Most hyperparameters of a space."""

MAX_CHOICES = 256
"""Most values of one hyperparameter."""

MAX_STATE_FILES = 256
"""Most files of one state."""

MAX_SKELETON_BYTES = 16 << 20
"""Longest `state.json`; the harness never parses it."""

MAX_TENSOR_HEADER_BYTES = 4 << 20
"""Longest header of a safetensors file: some forty thousand arrays. The harness parses it, in about 20x the memory."""
