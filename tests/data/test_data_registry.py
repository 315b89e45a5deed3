"""Data sets by name: parts are fixed, what is absent says how to get it, real archives are read."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from suite.data import registry
from suite.data.names import parse_name
from suite.data.papers import PAPERS, draw_hundred
from suite.data.preparing import training_cap
from suite.data.readers import Source
from suite.data.writer import ClassPlan
from suite.errors import DataError, UsageError

REAL = os.environ.get("SUITE_ARCHIVES")
needs_archives = pytest.mark.skipif(REAL is None, reason="SUITE_ARCHIVES names no folder of real archives")


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one archive, `pets`: 5 classes of 10 images of 64 pixels."""
    folder = tmp_path / "archives"
    folder.mkdir()
    with zipfile.ZipFile(folder / "pets.zip", "w") as archive:
        for c in "abcde":
            for i in range(10):
                buffer = io.BytesIO()
                Image.new("RGB", (64, 64), (ord(c), i, 0)).save(buffer, "PNG")
                archive.writestr(f"{c}/{i}.png", buffer.getvalue())
    monkeypatch.setenv("SUITE_ARCHIVES", str(folder))
    return folder


def test_a_local_archive_has_a_name_and_halves(archives: Path, tmp_path: Path) -> None:
    assert "archive/pets" in registry.names()
    whole = registry.prepare("archive/pets", tmp_path)
    assert (len(whole), whole.resolution, whole.manifest.origin.split) == (5, 64, "seeded")
    first, second = (registry.load(f"archive/pets-{half}", tmp_path) for half in (1, 2))
    assert sorted(first.class_names + second.class_names) == list("abcde")
    assert len(first) == 3
    assert registry.load("archive/pets:2", tmp_path).name == "archive/pets:2"
    registry.verify("archive/pets-2", tmp_path)


def test_what_is_prepared_needs_no_archive(archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = registry.prepare("archive/pets-1@32", tmp_path)
    assert first.resolution == 32
    monkeypatch.delenv("SUITE_ARCHIVES")
    assert registry.load("archive/pets-1@32", tmp_path).sha256 == first.sha256
    with pytest.raises(DataError) as caught:
        registry.load("archive/pets-1", tmp_path)  # prepared at 32 pixels only
    assert "SUITE_ARCHIVES" in caught.value.remedy
    assert "suite data prepare archive/pets" in caught.value.remedy


def test_an_archive_can_be_named_instead(archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUITE_ARCHIVES")
    assert len(registry.prepare("archive/mine", tmp_path, archives / "pets.zip")) == 5


def test_glyphs_are_prepared_and_cut_by_name(tmp_path: Path) -> None:
    whole = registry.prepare("glyphs/hebrew", tmp_path)
    ten, five = (registry.load(f"glyphs/hebrew:{n}", tmp_path) for n in (10, 5))
    assert set(five.class_names) < set(ten.class_names) < set(whole.class_names)
    assert registry.prepare("glyphs/hebrew:5", tmp_path).sha256 == five.sha256
    info = registry.describe("glyphs/hebrew:5", tmp_path)
    assert (info.prepared, info.classes, info.sha256) == (True, 5, five.sha256)


def test_a_secret_seed_changes_the_pixels_and_is_kept_apart(tmp_path: Path) -> None:
    public = registry.prepare("glyphs/lisu", tmp_path / "public")
    secret = registry.prepare("glyphs/lisu", tmp_path / "secret", seed=2**130 + 7)
    assert public.sha256 != secret.sha256
    assert secret.manifest.origin.seed_commitment is not None
    with pytest.raises(DataError, match="another rendering seed"):
        registry.prepare("glyphs/lisu", tmp_path / "public", seed=2**130 + 7)
    with pytest.raises(UsageError, match="takes no seed"):
        registry.prepare("digits", tmp_path, seed=1)


@pytest.mark.parametrize("name", [*PAPERS, "CIFAR-50-1", "ImageNet-50-2", "CUB-100-1", "ImageNet-R-2", "ImageNet-A-2"])
def test_an_absent_data_set_says_what_to_download_and_run(name: str, tmp_path: Path) -> None:
    assert name in registry.names()
    for attempt in (registry.load, registry.prepare):
        with pytest.raises(DataError) as caught:
            attempt(name, tmp_path)
        assert "https://" in caught.value.remedy
        assert "suite data prepare " in caught.value.remedy
        assert "--from FILE" in caught.value.remedy


def test_classes_of_the_papers_tracks_are_right() -> None:
    counts = {"CIFAR-50-1": 50, "ImageNet-50-2": 50, "ImageNet-100-2": 100, "CUB-100-2": 100, "ImageNet-R": 200}
    assert {name: registry.describe(name).classes for name in counts} == counts


@pytest.mark.parametrize(
    "name",
    ["nonsense", "", "../etc", "letters-3", "letters-1:", "letters-1:0x", "glyphs/klingon", "a" * 500, "-1", "@32"],
)
def test_unknown_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        registry.load(name, tmp_path)


def test_a_near_miss_is_hinted_at() -> None:
    with pytest.raises(DataError) as caught:
        registry.describe("CIFAR100")
    assert "CIFAR-100" in caught.value.remedy


@pytest.mark.parametrize(("name", "message"), [("digits:11", "11 of 10"), ("digits@48", "48 pixels")])
def test_too_many_classes_and_odd_resolutions_are_refused(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        registry.describe(name)


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=6), min_size=2, max_size=40, unique=True), st.data())
def test_halves_partition_and_counts_nest(class_names: list[str], data: st.DataObject) -> None:
    def part(text: str) -> set[str]:
        name = parse_name(text, lambda stem: stem == "whole")
        assert name is not None
        return {class_names[i] for i in name.part(class_names)}

    first, second = part("whole-1"), part("whole-2")
    assert first | second == set(class_names)
    assert not first & second
    assert len(first) - len(second) == len(class_names) % 2
    small = data.draw(st.integers(1, len(class_names)))
    large = data.draw(st.integers(small, len(class_names)))
    assert part(f"whole:{small}") <= part(f"whole:{large}")
    # the choice depends on names, not on their order
    shuffled = data.draw(st.permutations(class_names))
    name = parse_name("whole-1", lambda stem: stem == "whole")
    assert name is not None
    assert {shuffled[i] for i in name.part(shuffled)} == first


def test_parts_are_pinned() -> None:
    name = parse_name("letters-1:5", lambda stem: stem == "letters-1")
    assert name is not None
    assert name.part([f"c{i:02d}" for i in range(20)]) == GOLDEN_FIVE
    half = parse_name("CIFAR-50-2", lambda stem: stem == "CIFAR-100")
    assert half is not None
    assert (half.base, half.part([f"c{i:02d}" for i in range(12)])) == ("CIFAR-100", GOLDEN_HALF)


GOLDEN_FIVE = [2, 6, 8, 10, 14]
GOLDEN_HALF = [1, 3, 4, 5, 6, 11]


def test_the_hundreds_of_imagenet_are_disjoint_and_need_all_thousand() -> None:
    names = [f"n{i:08d}" for i in range(1000)]
    first, second = draw_hundred(names, 1), draw_hundred(names[::-1], 2)
    assert len(first) == len(second) == 100
    assert not set(first) & set(second)
    with pytest.raises(DataError, match="999 classes"):
        draw_hundred(names[1:], 1)


def test_a_data_set_over_twenty_gigabytes_is_capped() -> None:
    def source(train: int) -> Source:
        return Source([ClassPlan(str(i), train, 50) for i in range(100)], "source", None, lambda *_: None)

    assert training_cap(source(1300), 64) is None
    cap = training_cap(source(1300), 256)
    assert cap is not None
    assert 100 * (cap + 50) * 256 * 256 * 3 <= 20e9 < 100 * (cap + 51) * 256 * 256 * 3


def test_a_folder_with_too_few_classes_is_not_taken_for_the_papers(archives: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archives / "pets.zip") as archive:
        archive.extractall(tmp_path / "folder")
    with pytest.raises(DataError, match="holds 5 classes"):
        registry.prepare("ImageNet-R", tmp_path, tmp_path / "folder")
    with pytest.raises(DataError, match="not the official archive"):
        registry.prepare("CUB-200", tmp_path, archives / "pets.zip")


def test_imagenet_is_drawn_from_a_tree_with_both_splits(tmp_path: Path) -> None:
    for split in ("train", "val"):
        for i in range(1000):
            folder = tmp_path / "ilsvrc" / split / f"n{i:08d}"
            folder.mkdir(parents=True)
            (folder / "x.jpg").write_bytes(_JPEG)
    first = registry.prepare("ImageNet-100-1@32", tmp_path / "data", tmp_path / "ilsvrc")
    second = registry.prepare("ImageNet-100-2@32", tmp_path / "data", tmp_path / "ilsvrc")
    assert not set(first.class_names) & set(second.class_names)
    assert first.manifest.origin.split == "source"
    assert any("not comparable" in note for note in first.manifest.origin.notes)
    half = registry.load("ImageNet-50-1@32", tmp_path / "data")
    assert set(half.class_names) < set(first.class_names)
    assert registry.load("ImageNet-100@32", tmp_path / "data").sha256 == first.sha256


def _jpeg() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 32)).save(buffer, "JPEG")
    return buffer.getvalue()


_JPEG = _jpeg()


@needs_archives
def test_real_archives_are_read(tmp_path: Path) -> None:
    cifar = registry.prepare("archive/cifar10", tmp_path)
    assert (len(cifar), cifar.resolution, cifar.manifest.origin.split) == (10, 32, "source")
    assert (cifar.count("train", 0), cifar.count("test", 0)) == (100, 30)
    signs = registry.prepare("archive/gtsrb", tmp_path)
    assert (len(signs), signs.resolution, signs.manifest.origin.split) == (43, 64, "by_index")
    assert (signs.count("train", 0), signs.count("test", 0)) == (48, 12)
    for data_set in (cifar, signs):
        assert data_set.manifest.origin.source_sha256 is not None
        data_set.verify()
        assert data_set.images("train", 0).std() > 20


@needs_archives
@pytest.mark.slow
def test_the_halves_of_the_real_cifar100_are_disjoint(tmp_path: Path) -> None:
    first, second = (registry.prepare(f"archive/cifar100-{half}", tmp_path) for half in (1, 2))
    assert len(first) == len(second) == 50
    assert not set(first.class_names) & set(second.class_names)
    assert first.sha256 != second.sha256
