"""Readers find classes, keep the split a source has, and refuse hostile archives."""

from __future__ import annotations

import io
import pickle
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from suite.data import DataSet, Origin, Plan, write_data_set
from suite.data.dataset import file_sha256, no_progress
from suite.data.readers import Source, read_cifar, read_folders
from suite.data.readers import archive as archive_module
from suite.data.readers import images as images_module
from suite.data.readers.cifar import CIFAR10, CIFAR100, unpickle
from suite.data.readers.images import decode
from suite.errors import DataError


def picture(shade: int, size: tuple[int, int] = (8, 8), form: str = "PNG") -> bytes:
    """An evenly coloured image: its red says which one it is."""
    buffer = io.BytesIO()
    Image.new("RGB", size, (shade, 100, 200)).save(buffer, form)
    return buffer.getvalue()


def make_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def make_tar(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def make_folder(path: Path, members: dict[str, bytes]) -> Path:
    for name, content in members.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


MAKERS = {
    "zip": lambda where, members: make_zip(where / "a.zip", members),
    "tar": lambda where, members: make_tar(where / "a.tar", members, "w"),
    "tar.gz": lambda where, members: make_tar(where / "a.tgz", members),
    "tar.xz": lambda where, members: make_tar(where / "a.txz", members, "w:xz"),
    "folder": lambda where, members: make_folder(where / "a", members),
}
SPLIT = {
    "set/train/cat/1.png": picture(1),
    "set/test/dog/1.png": picture(4),
    "set/train/dog/2.png": picture(3),
    "set/train/dog/1.png": picture(2),
    "set/test/cat/x/1.png": picture(5),
    "set/readme.txt": b"no image",
    "set/.hidden/train/cat/9.png": picture(9),
}


def prepare(source: Source, where: Path, resolution: int = 8) -> DataSet:
    origin = Origin(source="test", licence="none", split=source.split)
    plan = Plan("read", 1, resolution, source.classes, origin)
    return write_data_set(where / "prepared", plan, lambda writer: source.fill(writer, resolution, no_progress))


def shades(data_set: DataSet) -> dict[str, tuple[list[int], list[int]]]:
    """The red of every image, by class."""
    return {
        name: tuple(data_set.images(split, i)[:, 0, 0, 0].tolist() for split in ("train", "test"))
        for i, name in enumerate(data_set.class_names)
    }


@pytest.mark.parametrize("kind", MAKERS)
def test_the_split_of_the_source_is_kept(kind: str, tmp_path: Path) -> None:
    source = read_folders(MAKERS[kind](tmp_path, SPLIT), "set")
    assert source.split == "source"
    assert shades(prepare(source, tmp_path)) == {"cat": ([1], [5]), "dog": ([2, 3], [4])}


def test_val_serves_as_test_where_there_is_no_test(tmp_path: Path) -> None:
    members = {name.replace("test/", "val/"): content for name, content in SPLIT.items()}
    assert read_folders(make_zip(tmp_path / "a.zip", members), "set").split == "source"


def unsplit(classes: int = 3, images: int = 10) -> dict[str, bytes]:
    return {f"{c}/{i:03d}.png": picture(c * images + i) for c in range(classes) for i in range(images)}


def test_a_source_without_split_gets_a_seeded_one(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", unsplit())
    source = read_folders(path, "set")
    assert source.split == "seeded"
    found = shades(prepare(source, tmp_path))
    for c in range(3):
        train, test = found[str(c)]
        assert len(test) == 2
        assert sorted(train + test) == list(range(c * 10, c * 10 + 10))
    again = read_folders(path, "set")
    assert shades(prepare(again, tmp_path / "again")) == found
    other = read_folders(path, "another name")
    assert shades(prepare(other, tmp_path / "other")) != found


def test_the_split_by_index_holds_out_the_last_images(tmp_path: Path) -> None:
    source = read_folders(make_tar(tmp_path / "a.tgz", dict(reversed(unsplit().items()))), "set", "by_index")
    assert source.split == "by_index"
    assert shades(prepare(source, tmp_path))["1"] == ([10, 11, 12, 13, 14, 15, 16, 17], [18, 19])


def test_classes_can_be_selected_and_training_images_capped(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", unsplit())
    source = read_folders(path, "set", "by_index", select=lambda names: [names[2]], cap=3)
    found = shades(prepare(source, tmp_path))
    assert list(found) == ["2"]
    assert len(found["2"][0]) == 3
    assert found["2"][1] == [28, 29]


def test_the_official_split_of_cub_is_read_from_its_lists(tmp_path: Path) -> None:
    members = {
        "CUB_200_2011/images/001.A/a.png": picture(1),
        "CUB_200_2011/images/001.A/b.png": picture(2),
        "CUB_200_2011/images/002.B/c.png": picture(3),
        "CUB_200_2011/images/002.B/d.png": picture(4),
        "CUB_200_2011/images.txt": b"1 001.A/a.png\n2 001.A/b.png\n3 002.B/c.png\n4 002.B/d.png\n",
        "CUB_200_2011/train_test_split.txt": b"1 0\n2 1\n3 1\n4 0\n",
    }
    source = read_folders(make_tar(tmp_path / "a.tgz", members), "CUB-200")
    assert source.split == "source"
    assert shades(prepare(source, tmp_path)) == {"001.A": ([2], [1]), "002.B": ([3], [4])}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"readme.txt": b""}, "no images"),
        ({"a.png": picture(1)}, "no class folder"),
        ({"cat/1.png": picture(1)}, "1 image"),
        ({"train/a/1.png": picture(1), "test/b/1.png": picture(2)}, "not both"),
        ({"cat/1.png": picture(1), "cat/2.png": b"no png", "cat/3.png": b"no png"}, "no readable image"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        prepare(read_folders(make_zip(tmp_path / "a.zip", members), "set"), tmp_path)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "name", ["../cat/1.png", "/cat/1.png", "cat/../../1.png", "cat//1.png", "cat\\1.png", "cat/\x07.png", "c" * 1025]
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_climb_or_hide_are_refused(tmp_path: Path, name: str, kind: str) -> None:
    path = MAKERS[kind](tmp_path, {**unsplit(), name: picture(1)})
    with pytest.raises(DataError, match="unsafe name"):
        read_folders(path, "set")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("cat/1.png")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(DataError, match="link or no regular file"):
        read_folders(path, "set")


def test_links_in_a_zip_are_refused(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("cat/1.png")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(DataError, match="no regular file"):
        read_folders(tmp_path / "a.zip", "set")


def test_doubled_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("cat/1.png"), io.BytesIO())
    with pytest.raises(DataError, match="two members"):
        read_folders(path, "set")


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.xz"])
def test_an_archive_that_swells_is_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "MAX_SWELLING", -(10**8))  # stands in for the first free GB
    path = MAKERS[kind](tmp_path, unsplit())
    with pytest.raises(DataError, match="times its size"):
        read_folders(path, "set")


@pytest.mark.parametrize("kind", ["zip", "tar", "folder"])
def test_a_member_that_is_too_large_is_not_read(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "MAX_MEMBER_BYTES", 60)
    source = read_folders(MAKERS[kind](tmp_path, unsplit()), "set")
    with pytest.raises(DataError, match="more than 60"):
        prepare(source, tmp_path)


def test_a_zip_member_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cat/1.png", bytes(5_000_000))
        archive.writestr("cat/2.png", picture(1))
    content = path.read_bytes().replace((5_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    path.write_bytes(content)
    with pytest.raises(DataError):
        prepare(read_folders(path, "set"), tmp_path)


def test_a_vast_extended_header_does_not_fill_the_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 200 << 20
    (tmp_path / "a.tar").write_bytes(info.tobuf() + bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(DataError):
        read_folders(tmp_path / "a.tar", "set")
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.xz"])
def test_a_truncated_archive_is_one_error(tmp_path: Path, kind: str) -> None:
    path = MAKERS[kind](tmp_path, unsplit())
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError):
        prepare(read_folders(path, "set"), tmp_path)


def test_an_absent_file_and_one_that_is_no_archive_are_named(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(DataError, match="neither a zip"):
        read_folders(tmp_path / "text", "set")
    with pytest.raises(DataError, match="does not exist"):
        read_folders(tmp_path / "absent", "set")


def test_images_are_scaled_by_their_short_side_and_cropped_in_the_middle() -> None:
    wide = np.zeros((40, 120, 3), np.uint8)
    wide[:, 40:80] = 255
    buffer = io.BytesIO()
    Image.fromarray(wide).save(buffer, "PNG")
    assert (decode(buffer.getvalue(), 40, "x") == 255).all()
    assert (decode(buffer.getvalue(), 8, "x")[:, 2:6] > 250).all()
    assert decode(picture(7, (3, 5)), 32, "x").shape == (32, 32, 3)
    assert (decode(picture(7, (3, 5)), 32, "x")[..., 0] == 7).all()


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "1", "I;16"])
def test_images_of_any_mode_become_rgb(mode: str) -> None:
    buffer = io.BytesIO()
    Image.new(mode, (8, 8)).save(buffer, "PNG")
    assert decode(buffer.getvalue(), 8, "x").shape == (8, 8, 3)


def test_an_image_bomb_is_refused_by_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(bomb, "PNG")
    with pytest.raises(DataError):
        decode(bomb.getvalue(), 8, "x")
    monkeypatch.setattr(images_module, "MAX_PIXELS", 63)
    with pytest.raises(DataError, match="8x8"):
        decode(picture(1), 8, "x")


def test_only_common_formats_are_opened() -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "TIFF")
    with pytest.raises(DataError, match="no readable image"):
        decode(buffer.getvalue(), 8, "x")


def cifar_members(layout: Any, per_batch: int = 20) -> tuple[dict[str, bytes], np.ndarray, np.ndarray]:
    """An archive's files in the official layout, with all images [N, 32, 32, 3] and labels [N] of its train part."""
    rng = np.random.default_rng(0)
    names = [f"name {i}".encode() for i in range(4)]
    members, images, labels = {layout.meta: pickle.dumps({layout.label_names: names}, 4)}, [], []
    for file in (*layout.train, *layout.test):
        pixels = rng.integers(0, 256, (per_batch, 32, 32, 3), dtype=np.uint8)
        targets = [i % 4 for i in range(per_batch)]
        rows = pixels.transpose(0, 3, 1, 2).reshape(per_batch, -1)
        raw = {b"data": np.ascontiguousarray(rows), layout.labels: targets, b"filenames": [b"x.png"] * per_batch}
        members[file] = pickle.dumps(raw, 4)
        if file in layout.train:
            images.append(pixels)
            labels += targets
    return members, np.concatenate(images), np.array(labels)


@pytest.mark.parametrize("layout", [CIFAR100, CIFAR10], ids=["100", "10"])
def test_the_official_cifar_layout_is_read(tmp_path: Path, layout: Any) -> None:
    members, images, labels = cifar_members(layout)
    path = make_tar(tmp_path / "cifar.tar.gz", members)
    source = read_cifar(path, layout, file_sha256(path))
    assert [entry.name for entry in source.classes] == ["name 0", "name 1", "name 2", "name 3"]
    data_set = prepare(source, tmp_path, 32)
    for label in range(4):
        assert np.array_equal(data_set.images("train", label), images[labels == label])
        assert data_set.count("test", label) == 5


def test_strings_as_python_2_wrote_them_are_read() -> None:
    # the official files: protocol 2 with 8-bit strings, {'labels': [3], 'data': array of two bytes}
    stream = (
        b"\x80\x02}q\x01(U\x06labelsq\x02]q\x03K\x03aU\x04dataq\x04cnumpy.core.multiarray\n_reconstruct\nq\x05"
        b"cnumpy\nndarray\nq\x06K\x00\x85U\x01bq\x07\x87q\x08Rq\x09(K\x01K\x01K\x02\x86cnumpy\ndtype\nq\x0a"
        b"U\x02u1K\x00K\x01\x87Rq\x0b(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x02\x07\x08tbu."
    )
    raw = unpickle(io.BytesIO(stream))
    assert raw[b"labels"] == [3]
    assert raw[b"data"].state[4] == b"\x07\x08"


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("executed",))


@pytest.mark.parametrize(
    "value", [{b"data": _Evil()}, {b"data": np.array([_Evil()], object)}, {b"x": range(3)}, {b"x": np.float64(1)}]
)
def test_a_pickle_that_names_anything_else_is_refused(value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match="asks for"):
        unpickle(io.BytesIO(pickle.dumps(value, 4)))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("content", [b"", b"junk", pickle.dumps([1]), pickle.dumps({b"a": 1})[:-3]])
def test_a_broken_pickle_is_one_error(content: bytes) -> None:
    with pytest.raises(DataError):
        unpickle(io.BytesIO(content))


def test_another_archive_than_the_official_one_is_not_opened(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "cifar.tar.gz", cifar_members(CIFAR100)[0])
    with pytest.raises(DataError, match="not the official archive"):
        read_cifar(path, CIFAR100)


@pytest.mark.parametrize("harm", ["shape", "label", "absent"])
def test_a_cifar_archive_with_odd_content_is_refused(tmp_path: Path, harm: str) -> None:
    members, _, _ = cifar_members(CIFAR100)
    if harm == "absent":
        del members[CIFAR100.test[0]]
    else:
        rows = np.zeros((2, 3072 - (harm == "shape")), np.uint8)
        members[CIFAR100.test[0]] = pickle.dumps({b"data": rows, b"fine_labels": [0, 4 if harm == "label" else 1]}, 4)
    path = make_tar(tmp_path / "cifar.tar.gz", members)
    with pytest.raises(DataError):
        read_cifar(path, CIFAR100, file_sha256(path))
