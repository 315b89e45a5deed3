"""A prepared data set is complete or absent, says what it is, and notices damage."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suite.data import ClassPlan, DataSet, Origin, Plan, Writer, data_root, write_data_set
from suite.data.dataset import no_progress
from suite.data.digits import fill_digits, plan_digits
from suite.errors import DataError, InfrastructureError

MakeDataSet = Callable[..., DataSet]
ORIGIN = Origin(source="made by a test", licence="none", split="source")
PLAN = Plan("tiny", 1, 8, [ClassPlan("a", 3, 2), ClassPlan("b", 1, 1)], ORIGIN)


def pixels(split: str, index: int, count: int) -> np.ndarray:
    """Random but reproducible images [count, 8, 8, 3]; no two are equal."""
    rng = np.random.default_rng([len(split), index])
    return rng.integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)


def fill(writer: Writer) -> None:
    for i, entry in enumerate(PLAN.classes):
        for position in reversed(range(entry.train)):
            writer.put("train", i, position, pixels("train", i, entry.train)[position : position + 1])
    for i, entry in enumerate(PLAN.classes):
        writer.put("test", i, 0, pixels("test", i, entry.test))


def test_images_put_in_any_order_come_back(tmp_path: Path) -> None:
    data_set = write_data_set(tmp_path / "tiny", PLAN, fill)
    assert data_set.class_names == ("a", "b")
    assert np.array_equal(data_set.images("train", 0), pixels("train", 0, 3))
    assert np.array_equal(np.load(data_set.path("test", 1)), pixels("test", 1, 1))
    data_set.verify()


def test_the_manifest_holds_the_hash_of_every_file(tmp_path: Path) -> None:
    data_set = write_data_set(tmp_path / "tiny", PLAN, fill)
    manifest = json.loads((tmp_path / "tiny" / "manifest.json").read_text())
    for split in ("train", "test"):
        for i, entry in enumerate(manifest["classes"]):
            content = (tmp_path / "tiny" / split / f"{i:05d}.npy").read_bytes()
            assert entry[f"{split}_sha256"] == hashlib.sha256(content).hexdigest()
    assert manifest["sha256"] == data_set.sha256


def test_preparing_again_does_nothing(tmp_path: Path) -> None:
    write_data_set(tmp_path / "tiny", PLAN, fill)

    def fail(writer: Writer) -> None:
        raise AssertionError("written twice")

    assert write_data_set(tmp_path / "tiny", PLAN, fail).sha256


def test_an_interrupted_preparation_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    def stop(writer: Writer) -> None:
        writer.put("train", 0, 0, pixels("train", 0, 3))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_data_set(tmp_path / "tiny", PLAN, stop)
    assert [p for p in tmp_path.iterdir() if p.is_dir()] == []
    (tmp_path / ".tiny.partial" / "train").mkdir(parents=True)  # as a killed process leaves it
    write_data_set(tmp_path / "tiny", PLAN, fill).verify()


def test_a_data_set_with_missing_images_is_never_put_in_place(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="missing"):
        write_data_set(tmp_path / "tiny", PLAN, lambda writer: None)
    assert not (tmp_path / "tiny").exists()


def test_too_small_a_disk_is_noticed_before_the_first_byte(tmp_path: Path) -> None:
    vast = Plan("vast", 1, 256, [ClassPlan("a", 10**10, 1)], ORIGIN)
    with pytest.raises(InfrastructureError, match="free"):
        write_data_set(tmp_path / "vast", vast, fill)


def test_a_place_that_is_no_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError) as caught:
        write_data_set(tmp_path / "file" / "tiny", PLAN, fill)
    assert "--data" in caught.value.remedy


@pytest.mark.parametrize(("field", "value"), [("version", 2), ("resolution", 16)])
def test_what_is_there_is_not_taken_for_something_else(tmp_path: Path, field: str, value: Any) -> None:
    write_data_set(tmp_path / "tiny", PLAN, fill)
    other = Plan(**{**vars(PLAN), field: value})
    with pytest.raises(DataError, match=f"another {field}"):
        write_data_set(tmp_path / "tiny", other, fill)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def test_one_flipped_bit_fails_verification(make_data_set: MakeDataSet) -> None:
    data_set = make_data_set([(2, 2), (2, 2)])
    _flip(data_set.path("test", 1))
    with pytest.raises(DataError, match="differs from its manifest") as caught:
        data_set.verify()
    assert "prepare the data set again" in caught.value.remedy


@pytest.mark.parametrize("damage", [_cut, Path.unlink])
def test_a_short_or_absent_file_is_noticed_on_opening(make_data_set: MakeDataSet, damage: Any) -> None:
    data_set = make_data_set([(2, 2)])
    damage(data_set.path("train", 0))
    with pytest.raises(DataError, match="damaged"):
        DataSet.open(data_set.directory)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 1}', "null", "{" * 10_000], ids=["empty", "list", "partial", "null", "deep"]
)
def test_a_malformed_manifest_is_one_error(make_data_set: MakeDataSet, text: str) -> None:
    data_set = make_data_set([(1, 1)])
    (data_set.directory / "manifest.json").write_text(text)
    with pytest.raises(DataError, match="malformed"):
        DataSet.open(data_set.directory)


def test_a_manifest_with_an_edited_count_is_refused(make_data_set: MakeDataSet) -> None:
    data_set = make_data_set([(1, 1)])
    path = data_set.directory / "manifest.json"
    path.write_text(path.read_text().replace('"train":1', '"train":2'))
    with pytest.raises(DataError, match="content hash"):
        DataSet.open(data_set.directory)


def test_a_subset_is_a_view_with_a_hash_of_its_own(make_data_set: MakeDataSet) -> None:
    whole = make_data_set([(1, 1), (2, 3), (4, 1)])
    part = whole.subset([2, 0], "part")
    assert part.class_names == ("class 2", "class 0")
    assert part.path("train", 0) == whole.path("train", 2)
    assert part.count("train", 0) == 4
    assert part.sha256 != whole.sha256
    assert part.subset([1], "one").class_names == ("class 0",)
    part.verify()
    with pytest.raises(ValueError, match="twice"):
        whole.subset([1, 1], "double")


def test_the_hash_is_of_the_content_not_of_the_name(make_data_set: MakeDataSet) -> None:
    assert make_data_set([(1, 1)], name="one").sha256 == make_data_set([(1, 1)], name="two").sha256


def test_the_data_root_is_the_argument_then_the_variable_then_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SUITE_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert data_root() == tmp_path / ".cache" / "continual-suite" / "data"
    monkeypatch.setenv("SUITE_DATA", "/somewhere")
    assert data_root() == Path("/somewhere")
    assert data_root(Path("/here")) == Path("/here")


def test_digits_are_the_real_ones_split_once_and_for_all(tmp_path: Path) -> None:
    from sklearn.datasets import load_digits

    plan = plan_digits("digits", 32)
    data_set = write_data_set(tmp_path / "digits", plan, lambda writer: fill_digits(writer, 32, no_progress))
    labels = load_digits().target
    totals = [data_set.count("train", i) + data_set.count("test", i) for i in range(10)]
    assert totals == np.bincount(labels).tolist()
    everything = [data_set.images(split, i) for split in ("train", "test") for i in range(10)]
    assert all(images.shape[1:] == (32, 32, 3) for images in everything)
    # the 8x8 original shows through: block means of the enlarged image follow its pixels
    small = load_digits().images[labels == 0] * (255 / 16)
    means = data_set.images("train", 0)[..., 0].reshape(-1, 8, 4, 8, 4).mean(axis=(2, 4))
    distance = np.abs(means[:, None] - small[None]).mean(axis=(2, 3))
    assert distance.min(axis=1).max() < 20
    assert len(set(distance.argmin(axis=1).tolist())) == len(means)
    assert data_set.sha256 == "0d81cf0ce15746902f3eb28653ba0d6d9dfb665a38d64defdaad1c09d6d4bd9a"
