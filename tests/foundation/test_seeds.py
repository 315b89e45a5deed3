"""Seeds: pinned values, since a change would change every result; and sanity of what is drawn from them."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.seeds import Counter, canonical_json, content_hash, derive_seed, permutation_key, shuffled


def test_canonical_json_is_pinned() -> None:
    value = {"b": [1, 1.0, True, None, "é\n"], "a": {"z": 0.1, "y": -0.0}}
    assert canonical_json(value) == r'{"a":{"y":-0.0,"z":0.1},"b":[1,1.0,true,null,"\u00e9\n"]}'
    assert content_hash(value) == hashlib.sha256(canonical_json(value).encode()).hexdigest()


@given(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()))
def test_canonical_json_does_not_depend_on_order(value: dict[str, Any]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)
    assert json.loads(canonical_json(value)) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [-math.inf]}])
def test_what_json_does_not_have_has_no_hash(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(value)


def by_hand(*axes: Any) -> int:
    """The definition of DESIGN 4 in other words: the first 63 bits of sha256 of the list as compact JSON."""
    digest = hashlib.sha256(json.dumps(list(axes), separators=(",", ":"), sort_keys=True).encode()).digest()
    return int.from_bytes(digest, "big") >> (256 - 63)


GOLDEN = [
    (("glyphs-6", "tuning", "letters-1:50", 0), 2890405897429724844),
    (("glyphs-6", "tuning", "letters-1:50", 0, "learner"), 7357140718048753553),
    (("glyphs-6", "draw", 29), 7630159451697085886),
    ((), 2858069222894195974),
]


@pytest.mark.parametrize(("axes", "seed"), GOLDEN)
def test_derived_seeds_are_pinned(axes: tuple[Any, ...], seed: int) -> None:
    assert derive_seed(*axes) == seed == by_hand(*axes)


@given(st.lists(st.integers() | st.text() | st.booleans(), max_size=4))
def test_a_seed_has_63_bits(axes: list[Any]) -> None:
    assert 0 <= derive_seed(*axes) < 2**63


def test_axes_do_not_run_together() -> None:
    seeds = {
        derive_seed(*axes)
        for axes in [("a", "b"), ("ab",), ("a", "b", ""), (["a", "b"],), (1,), ("1",), (1.0,), (True,), (None,), ()]
    }
    assert len(seeds) == 10


# --- the counter ----------------------------------------------------------------------------------------------------


def words_by_hand(key: bytes, count: int) -> list[int]:
    stream = b"".join(hashlib.sha256(key + i.to_bytes(8, "big")).digest() for i in range(count // 4 + 1))
    return [int.from_bytes(stream[8 * i : 8 * i + 8], "big") for i in range(count)]


def test_the_counter_reads_sha256_word_by_word() -> None:
    words = words_by_hand(b"key", 9)
    counter = Counter(b"key")
    assert [counter.below(2**64) for _ in range(9)] == words
    counter = Counter(b"key")
    assert [counter.unit() for _ in range(9)] == [(w >> 11) / 2**53 for w in words]


def test_the_counter_is_pinned() -> None:
    assert [Counter(7).below(1000)] == [783]
    counter = Counter(7)
    assert [counter.below(n) for n in (10, 10, 10, 1000, 2**40)] == [3, 9, 4, 591, 585864429897]
    assert Counter(7).unit() == 0.45420775377714684


def test_an_integer_key_is_32_bytes() -> None:
    assert Counter(5).unit() == Counter((5).to_bytes(32, "big")).unit()


@given(st.integers(1, 2**64), st.binary(max_size=8))
def test_numbers_stay_below_their_bound(bound: int, key: bytes) -> None:
    counter = Counter(key)
    assert all(0 <= counter.below(bound) < bound for _ in range(5))
    assert 0 <= counter.unit() < 1


@pytest.mark.parametrize("bound", [0, -1, 2**64 + 1])
def test_a_bound_without_numbers_is_refused(bound: int) -> None:
    """Above 2**64 rejection would never end."""
    with pytest.raises(ValueError, match="bound"):
        Counter(0).below(bound)


@pytest.mark.parametrize("bound", [2, 6, 10, 1000])
def test_numbers_are_uniform(bound: int) -> None:
    """Chi-square over 40 numbers a cell; the bound is six standard deviations above its mean (the key is fixed)."""
    counter, cells = Counter(b"chi-square"), [0] * bound
    for _ in range(40 * bound):
        cells[counter.below(bound)] += 1
    statistic = sum((c - 40) ** 2 / 40 for c in cells)
    assert statistic < (bound - 1) + 6 * math.sqrt(2 * (bound - 1))


def test_rejection_removes_the_bias() -> None:
    """With 3 * 2**62 a plain remainder gives the lower third twice as often as it should be."""
    counter, bound = Counter(b"bias"), 3 << 62
    low = sum(counter.below(bound) < bound // 3 for _ in range(3000))
    assert abs(low - 1000) < 6 * math.sqrt(3000 * (1 / 3) * (2 / 3))


# --- shuffles -------------------------------------------------------------------------------------------------------


def test_shuffles_are_pinned() -> None:
    assert shuffled(range(10), 0) == [7, 6, 9, 5, 4, 2, 3, 1, 0, 8]
    assert shuffled("abcdef", b"key") == ["b", "d", "f", "a", "c", "e"]
    assert shuffled([], 1) == []
    assert shuffled([3], 1) == [3]


@given(st.lists(st.integers()), st.integers(0, 2**63))
def test_a_shuffle_is_a_permutation_and_leaves_its_argument(items: list[int], key: int) -> None:
    before = list(items)
    assert sorted(shuffled(items, key)) == sorted(items)
    assert items == before
    assert shuffled(items, key) == shuffled(tuple(items), key)


def test_every_permutation_is_as_likely_as_the_next() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for key in range(2400):
        order = tuple(shuffled(range(4), key))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    statistic = sum((c - 100) ** 2 / 100 for c in counts.values())
    assert statistic < 23 + 6 * math.sqrt(2 * 23)


# --- secret permutations --------------------------------------------------------------------------------------------


def test_a_permutation_key_is_hmac_of_the_axes() -> None:
    assert permutation_key(b"secret", "trial", 3) == hmac.digest(b"secret", b'["trial",3]', "sha256")


def test_permutation_keys_differ_by_run_trial_and_task_and_stay_on_retry() -> None:
    keys = [permutation_key(run, trial, task) for run in (b"r1", b"r2") for trial in ("a", "b") for task in range(3)]
    assert len(set(keys)) == 12
    assert permutation_key(b"r1", "a", 0) == keys[0]
    orders = {tuple(shuffled(range(20), key)) for key in keys}
    assert len(orders) == 12
