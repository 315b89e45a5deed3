"""Glyphs: shipped masters that differ, and renderings that are the same everywhere."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from suite.data import glyphs, write_data_set
from suite.data.dataset import no_progress
from suite.data.glyphs import load_index, load_masters, render
from suite.data.glyphs.masters import THRESHOLD, blurred, distances
from suite.data.glyphs.sets import fill_glyphs, glyph_sets, plan_glyphs, seed_commitment
from suite.data.glyphs.streams import Stream
from suite.data.glyphs.warp import distance_field
from suite.errors import DataError

PACKAGE = Path(glyphs.__file__).parent


@pytest.fixture(scope="module")
def everything() -> tuple[list[str], np.ndarray]:
    names = [name for script in load_index().scripts.values() for name in script]
    return names, load_masters(names)


def test_there_are_enough_classes_in_enough_scripts() -> None:
    scripts = {s: names for s, names in load_index().scripts.items() if load_index().kinds[s] != "symbol"}
    assert len(scripts) >= 15
    assert sum(map(len, scripts.values())) >= 1500
    plan = plan_glyphs("letters-1", 32)
    assert all(entry.train + entry.test >= 60 for entry in plan.classes)


def test_the_shipped_files_are_small() -> None:
    assert sum(path.stat().st_size for path in PACKAGE.iterdir() if path.is_file()) < 4e6


def test_no_two_classes_look_the_same(everything: tuple[list[str], np.ndarray]) -> None:
    names, masters = everything
    features = blurred(masters)
    near = distances(features, features)
    np.fill_diagonal(near, 1)
    first, second = np.unravel_index(near.argmin(), near.shape)
    assert near.min() >= THRESHOLD - 1e-5, (names[first], names[second])


def test_look_alikes_of_other_scripts_were_left_out() -> None:
    dropped = {glyph: like for glyph, like, _ in load_index().dropped}
    assert dropped["greek/U+0391"] == "latin/U+0041"  # Alpha, A
    assert dropped["cyrillic/U+0420"] == "latin/U+0050"  # Er, P
    assert all(distance <= THRESHOLD for _, _, distance in load_index().dropped)
    assert not set(dropped) & {name for script in load_index().scripts.values() for name in script}


def test_the_distance_is_zero_for_equal_and_one_for_disjoint_ink() -> None:
    left, right = np.zeros((2, 96, 96), np.uint8)
    left[20:40, 8:30], right[20:40, 60:80] = 1, 1
    features = blurred(np.stack([left, right]))
    assert distances(features, features) == pytest.approx(np.array([[0, 1], [1, 0]]), abs=1e-6)


def test_every_master_has_its_ink_in_the_middle(everything: tuple[list[str], np.ndarray]) -> None:
    names, masters = everything
    for name, master in zip(names, masters, strict=True):
        rows, columns = np.flatnonzero(master.any(axis=1)), np.flatnonzero(master.any(axis=0))
        extent = max(np.ptp(rows), np.ptp(columns)) + 1
        assert 70 <= extent <= 80, name
        assert abs(rows[0] + rows[-1] - 95) <= 12, name


def test_no_script_shows_the_box_of_a_missing_glyph_twice(everything: tuple[list[str], np.ndarray]) -> None:
    _, masters = everything
    assert len({master.tobytes() for master in masters}) == len(masters)


def test_named_sets_overlap_only_where_they_say() -> None:
    sets = {name: set(classes) for name, classes in glyph_sets().items()}
    for name in ("letters-1", "letters-2", "symbols", "glyphs-pretrain"):
        assert len(sets[name]) == len(glyph_sets()[name]) >= 160
    assert not sets["letters-1"] & sets["letters-2"]
    assert sets["letters-1"] | sets["letters-2"] <= sets["glyphs"]
    assert not sets["glyphs-pretrain"] & (sets["glyphs"] | sets["symbols"])
    assert not sets["symbols"] & sets["glyphs"]
    pretrain = {name.partition("/")[0] for name in sets["glyphs-pretrain"]}
    assert not pretrain & {name.partition("/")[0] for name in sets["glyphs"]}


def test_letters_draw_on_the_same_scripts_in_like_number() -> None:
    def scripts(name: str) -> dict[str, int]:
        found = [c.partition("/")[0] for c in glyph_sets()[name]]
        return {s: found.count(s) for s in found}

    assert scripts("letters-1") == scripts("letters-2")
    assert len(scripts("letters-1")) >= 15


@pytest.mark.parametrize(
    ("name", "style", "resolution", "digest"),
    [
        ("latin/U+0041", "ink", 32, "47f3e947c509bd88"),
        ("greek/U+03C9", "ink", 64, "47a485595c88bda7"),
        ("math/U+2201", "outline", 32, "bbf4b8e3692ab23b"),
    ],
)
def test_pixels_are_pinned(name: str, style: str, resolution: int, digest: str) -> None:
    images = render(name, load_masters([name])[0], 3, resolution, style, seed=0)
    assert hashlib.sha256(images.tobytes()).hexdigest()[:16] == digest


def philox(key: int, blocks: int) -> list[int]:
    """Philox4x64-10 (Salmon et al., SC 2011), written here once more: words of the counters 1, 2, ..."""
    mask, words = 2**64 - 1, []
    for block in range(1, blocks + 1):
        c, k = [block, 0, 0, 0], [key & mask, key >> 64]
        for _ in range(10):
            p, q = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
            c = [(q >> 64) ^ c[1] ^ k[0], q & mask, (p >> 64) ^ c[3] ^ k[1], p & mask]
            k = [(k[0] + 0x9E3779B97F4A7C15) & mask, (k[1] + 0xBB67AE8584CAA73B) & mask]
        words += c
    return words


def test_random_numbers_are_those_of_philox_keyed_by_sha256() -> None:
    key = hashlib.sha256(hashlib.sha256(b'["axis",3]').digest() + b"purpose").digest()[:16]
    words = philox(int.from_bytes(key, "big"), 3)
    assert (Stream(3, "axis", 3).units("purpose", 4) * 2**24).ravel().tolist() == [word >> 40 for word in words]
    first = [byte for word in words[:2] for byte in word.to_bytes(8, "little")]
    noise = Stream(1, "axis", 3).triangular("purpose", 5) * 255 + 255
    assert noise.ravel() == pytest.approx([first[i] + first[i + 1] for i in range(0, 10, 2)])


def test_an_image_does_not_depend_on_how_many_are_made() -> None:
    master = load_masters(["thai/U+0E01"])[0]
    few, many = (render("thai/U+0E01", master, count, 32, "ink", 5) for count in (3, 11))
    assert np.array_equal(few, many[:3])


@pytest.mark.parametrize("style", ["ink", "outline"])
def test_images_differ_from_each_other_and_with_the_seed(style: str) -> None:
    master = load_masters(["latin/U+0042"])[0]
    public, secret = (render("latin/U+0042", master, 20, 32, style, seed) for seed in (0, 2**200 + 1))
    assert len({image.tobytes() for image in [*public, *secret]}) == 40
    assert public.std(axis=(1, 2, 3)).min() > 10  # none is blank


def test_the_distance_field_is_euclidean() -> None:
    master = np.zeros((96, 96), np.uint8)
    master[40:50, 30:60] = 1
    ink = np.argwhere(master == 1)
    field = distance_field(master)
    for y, x in [(0, 0), (45, 95), (52, 63), (95, 40)]:
        assert field[y, x] == pytest.approx(np.sqrt(((ink - [y, x]) ** 2).sum(axis=1).min()) - 0.5, rel=1e-6)
    assert field[45, 45] == pytest.approx(-4.5)


def test_a_set_is_written_with_its_licence_and_learnable(tmp_path: Path) -> None:
    plan = plan_glyphs("glyphs/hebrew", 32)
    data_set = write_data_set(tmp_path / "x", plan, lambda writer: fill_glyphs(writer, plan, None, no_progress))
    assert "Open Font" in data_set.manifest.origin.licence
    assert data_set.manifest.origin.seed_commitment is None
    train = np.stack([data_set.images("train", i)[:, ::2, ::2].reshape(50, -1) for i in range(10)]).astype(float)
    test = np.stack([data_set.images("test", i)[:, ::2, ::2].reshape(20, -1) for i in range(10)]).astype(float)
    gaps = ((test[:, :, None] - train.mean(axis=1)[None, None]) ** 2).sum(axis=-1)
    accuracy = (gaps.argmin(axis=-1) == np.arange(10)[:, None]).mean()
    assert 0.3 < accuracy < 0.85  # nearest class mean on raw pixels: neither trivial nor hopeless


def test_a_secret_seed_shows_only_by_its_commitment(tmp_path: Path) -> None:
    seed = 123456789 << 128
    plan = plan_glyphs("glyphs/lisu", 32, seed)
    data_set = write_data_set(tmp_path / "x", plan, lambda writer: fill_glyphs(writer, plan, seed, no_progress))
    text = (tmp_path / "x" / "manifest.json").read_text()
    assert seed_commitment(seed) in text
    assert str(seed) not in text
    public = plan_glyphs("glyphs/lisu", 32)
    with pytest.raises(DataError, match="another rendering seed"):
        write_data_set(tmp_path / "x", public, lambda writer: None)
    assert data_set.manifest.origin.seed_commitment == seed_commitment(seed)


def test_an_unknown_glyph_is_refused() -> None:
    with pytest.raises(DataError, match="klingon"):
        load_masters(["klingon/U+0041"])
