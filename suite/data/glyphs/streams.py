"""Random numbers that are the same everywhere: raw words of Philox4x64-10 keyed by sha256, turned to floats here.

numpy keeps the raw words of a bit generator stable, not the distributions drawn from them; so none of those is used.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from suite.seeds import canonical_json

Float = NDArray[np.float32]


class Stream:
    """Numbers for `count` images of one class. Image i's numbers do not depend on `count`, nor on other purposes."""

    def __init__(self, count: int, *axes: object) -> None:
        self._count = count
        self._key = hashlib.sha256(canonical_json(list(axes)).encode()).digest()

    def _raw(self, purpose: str, words: int) -> NDArray[np.uint64]:
        key = hashlib.sha256(self._key + purpose.encode()).digest()[:16]
        raw = np.random.Philox(key=int.from_bytes(key, "big")).random_raw(words)
        return np.asarray(raw, np.uint64)

    def units(self, purpose: str, *shape: int) -> Float:
        """Uniform in [0, 1), float32 [count, *shape], 24 bits each."""
        size = self._count * int(np.prod(shape))
        words = self._raw(purpose, size) >> np.uint64(40)
        return (words.astype(np.float32) * np.float32(2.0**-24)).reshape(self._count, *shape)

    def between(self, purpose: str, low: float, high: float, *shape: int) -> Float:
        """Uniform in [low, high), float32 [count, *shape]."""
        return self.units(purpose, *shape) * np.float32(high - low) + np.float32(low)

    def triangular(self, purpose: str, *shape: int) -> Float:
        """Noise in (-1, 1) with a triangular density: sum of two bytes; float32 [count, *shape].

        An image takes whole words, so that the next one's numbers do not shift.
        """
        size = int(np.prod(shape))
        words = -(-size * 2 // 8)
        raw = self._raw(purpose, self._count * words).astype("<u8").view(np.uint8).reshape(self._count, words * 8)
        pairs = raw[:, : size * 2].reshape(self._count, *shape, 2)
        total = pairs[..., 0].astype(np.float32) + pairs[..., 1]
        return (total - np.float32(255)) * np.float32(1 / 255)
