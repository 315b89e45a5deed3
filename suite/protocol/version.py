"""The version of the learner protocol; a learner and a harness understand each other within one major version."""

from __future__ import annotations

PROTOCOL_VERSION = "1.0"
