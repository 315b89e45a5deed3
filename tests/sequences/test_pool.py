"""A pool is its classes: filtered, hashed by content, grown by versions, and split the same way everywhere."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.errors import UsageError
from suite.sequences.pool import Pool, PoolClass, PoolDataset, split_class


def member(dataset: str, name: str, train: int = 50, test: int = 0, content: str = "") -> PoolClass:
    digest = hashlib.sha256((content or dataset + name).encode()).hexdigest()
    return PoolClass(dataset=dataset, name=name, train=train, test=test, sha256=digest)


def dataset(name: str, *classes: PoolClass, licence: str = "CC0") -> PoolDataset:
    return PoolDataset(name=name, licence=licence, source="made up", classes=classes)


BIRDS = dataset("birds", member("birds", "wren"), member("birds", "auk", train=30, test=20), member("birds", "emu", 10))
FOOD = dataset("food", member("food", "pie"))


def test_classes_with_few_images_are_left_out() -> None:
    assert [c.key for c in Pool(name="p", datasets=(FOOD, BIRDS)).classes] == [
        "birds/auk",
        "birds/emu",
        "birds/wren",
        "food/pie",
    ]
    assert [c.key for c in Pool(name="p", datasets=(FOOD, BIRDS), min_images=45).classes] == [
        "birds/auk",
        "birds/wren",
        "food/pie",
    ]


def test_the_hash_depends_on_content_and_not_on_order_or_labels() -> None:
    pool = Pool(name="p", datasets=(BIRDS, FOOD))
    assert pool.hash == Pool(name="q", version=4, datasets=(FOOD, BIRDS)).hash
    assert pool.hash == Pool(name="p", datasets=(BIRDS, dataset("food", member("food", "pie"), licence="MIT"))).hash
    assert pool.hash != Pool(name="p", datasets=(BIRDS, FOOD), min_images=45).hash
    changed = dataset("food", member("food", "pie", content="other images"))
    assert pool.hash != Pool(name="p", datasets=(BIRDS, changed)).hash


def test_growth_gives_a_version_that_names_its_parent() -> None:
    pool = Pool(name="p", datasets=(BIRDS,))
    grown = pool.grown([FOOD])
    assert (grown.version, grown.parent) == (2, pool.hash)
    assert {c.key for c in grown.classes} > {c.key for c in pool.classes}
    assert grown.hash != pool.hash


@pytest.mark.parametrize(("added", "match"), [([FOOD], "holds food already"), ([], "nothing to add")])
def test_growth_adds_only_what_is_new(added: list[PoolDataset], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        Pool(name="p", datasets=(FOOD,)).grown(added)


def test_a_pool_survives_its_json() -> None:
    pool = Pool(name="p", datasets=(BIRDS, FOOD)).grown([dataset("cars", member("cars", "mini"))])
    assert Pool.model_validate_json(pool.model_dump_json()) == pool


def test_manifests_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(ValueError, match="another data set"):
        dataset("birds", member("food", "pie"))
    with pytest.raises(ValueError, match="two classes"):
        dataset("food", member("food", "pie"), member("food", "pie", 3))
    with pytest.raises(ValueError, match="one name"):
        Pool(name="p", datasets=(FOOD, FOOD))
    with pytest.raises(ValueError, match="pattern"):
        member("a/b", "c")


@given(st.integers(3, 400), st.integers(0, 100))
def test_a_split_uses_every_image_once(train: int, test: int) -> None:
    split = split_class(member("birds", "wren", train=train, test=test))
    fitted = [*split.train, *split.validation, *(() if test else split.test)]
    assert sorted(fitted) == list(range(train))
    assert min(len(split.train), len(split.validation), len(split.test)) >= 1
    assert split.test_source == ("test" if test else "train")
    if test:
        assert split.test == tuple(range(test))


def test_shares_are_kept() -> None:
    split = split_class(member("birds", "wren", train=200), validation=0.1, test=0.2)
    assert (len(split.train), len(split.validation), len(split.test)) == (140, 20, 40)


def test_a_split_follows_the_class_and_its_images_only() -> None:
    wren = member("birds", "wren")
    assert split_class(wren) == split_class(wren)
    assert split_class(wren).validation != split_class(member("birds", "wren", content="new photos")).validation


@pytest.mark.parametrize(("train", "test"), [(2, 0), (1, 5), (0, 5)])
def test_too_few_images_cannot_be_split(train: int, test: int) -> None:
    with pytest.raises(UsageError, match="too few"):
        split_class(member("birds", "wren", train=train, test=test))


@pytest.mark.parametrize("shares", [(0.0, 0.2), (0.2, 0.0), (0.5, 0.5)])
def test_shares_must_leave_something_to_train_on(shares: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="shares"):
        split_class(member("birds", "wren"), *shares)
