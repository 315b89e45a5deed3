"""Canonical JSON, content hashes, and the seeds derived from them (DESIGN 4).

Nothing here draws from a library's random stream: a stream may change with a version, sha256 does not.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def canonical_json(value: Any) -> str:
    """`value` as JSON with sorted keys, no spaces and no NaN: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def content_hash(value: Any) -> str:
    """sha256 hex digest of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def derive_seed(*axes: Any) -> int:
    """A seed in [0, 2**63) that depends on the axes and on nothing else."""
    return int(content_hash(list(axes))[:16], 16) >> 1


def permutation_key(run_key: bytes, *axes: Any) -> bytes:
    """A secret key for one permutation: HMAC-SHA256 of the axes under the run's key."""
    return hmac.new(run_key, canonical_json(list(axes)).encode(), hashlib.sha256).digest()


class Counter:
    """Uniform integers from sha256(key || counter): the same on every machine and in every version."""

    def __init__(self, key: bytes | int) -> None:
        self._key = key if isinstance(key, bytes) else key.to_bytes(32, "big")
        self._block = 0
        self._pool: list[int] = []

    def _next64(self) -> int:
        if not self._pool:
            digest = hashlib.sha256(self._key + self._block.to_bytes(8, "big")).digest()
            self._pool = [int.from_bytes(digest[i : i + 8], "big") for i in (24, 16, 8, 0)]
            self._block += 1
        return self._pool.pop()

    def below(self, bound: int) -> int:
        """Uniform in [0, bound), without modulo bias (rejection); bound in 1 .. 2**64."""
        if not 0 < bound <= 1 << 64:
            raise ValueError(f"bound {bound} is not in 1 .. 2**64")
        limit = (1 << 64) - (1 << 64) % bound
        while (value := self._next64()) >= limit:
            continue
        return value % bound

    def unit(self) -> float:
        """Uniform in [0, 1) with 53 bits."""
        return (self._next64() >> 11) / (1 << 53)


def shuffled(items: Sequence[T], key: bytes | int) -> list[T]:
    """A Fisher-Yates shuffle of `items` driven by `Counter(key)`; golden values are pinned in the tests."""
    result, counter = list(items), Counter(key)
    for i in range(len(result) - 1, 0, -1):
        j = counter.below(i + 1)
        result[i], result[j] = result[j], result[i]
    return result
