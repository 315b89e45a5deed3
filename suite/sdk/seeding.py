"""Reseeding before each call, so that strict, resumed and in-process runs of a trial agree."""

from __future__ import annotations

import hashlib
import random
import sys

import numpy as np


def call_seed(learner_seed: int, task: int, call: str) -> int:
    """A 32-bit seed from sha256 of the learner's seed, the task and the call."""
    return int.from_bytes(hashlib.sha256(f"{learner_seed}/{task}/{call}".encode()).digest()[:4], "big")


def reseed(seed: int) -> None:
    """Seed Python, numpy and, if it is loaded, PyTorch (so import it with your module, not inside a method)."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (authors may use the legacy generator)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)
