"""The engine's attach stream, and the tar reader for outputs."""

from __future__ import annotations

import contextlib
import io
import struct
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suite.errors import InfrastructureError, LearnerError
from suite.sandbox import Limits
from suite.sandbox.docker.attach import Frames
from suite.sandbox.docker.outputs import read_outputs, weigh_outputs
from suite.sandbox.pump import Stream
from suite.status import Status

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
LIMITS = Limits(output_bytes=100_000, output_files=8, file_bytes=50_000)
NAMES = st.text("abcXYZ019._-", min_size=1, max_size=100).filter(lambda name: name not in {".", ".."})


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data), size))


def archive(members: list[tuple[tarfile.TarInfo, bytes]], flavour: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar archive by Python's own writer."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=flavour) as tar:
        for info, data in members:
            info.size = len(data) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


TOP = (member("out", tarfile.DIRTYPE), b"")


# --- frames -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=12), st.integers(1, 50))
def test_frames_come_apart_however_they_are_cut(frames: list[tuple[int, bytes]], size: int) -> None:
    data = b"".join(struct.pack(">BxxxL", number, len(payload)) + payload for number, payload in frames)
    reader, got = Frames(), {Stream.OUT: b"", Stream.ERR: b""}
    for chunk in cut(data, size):
        for stream, part in reader.feed(chunk):
            got[stream] += part
    assert got[Stream.OUT] == b"".join(payload for number, payload in frames if number == 1)
    assert got[Stream.ERR] == b"".join(payload for number, payload in frames if number == 2)


def test_a_frame_of_four_gigabytes_is_passed_on_as_it_comes() -> None:
    reader = Frames()
    assert reader.feed(struct.pack(">BxxxL", 1, 2**32 - 1) + b"ab") == [(Stream.OUT, b"ab")]
    assert reader.feed(b"cd") == [(Stream.OUT, b"cd")]


# --- tar --------------------------------------------------------------------------------------------------------------


@FEW
@given(
    st.dictionaries(NAMES, st.binary(max_size=3000), max_size=8),
    st.integers(1, 2000),
    st.sampled_from([tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT]),
)
def test_what_tar_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], size: int, flavour: int
) -> None:
    data = archive([TOP, *((member(f"out/{name}"), content) for name, content in files.items())], flavour)
    folder = tmp_path_factory.mktemp("out")
    paths = read_outputs(cut(data, size), folder, LIMITS)
    assert {path.name: path.read_bytes() for path in paths} == files
    assert sorted(folder.iterdir()) == paths


@pytest.mark.parametrize(
    "bad",
    [
        member("out/link", tarfile.SYMTYPE, "/etc/passwd"),
        member("out/hard", tarfile.LNKTYPE, "out/a"),
        member("out/device", tarfile.CHRTYPE),
        member("out/disk", tarfile.BLKTYPE),
        member("out/fifo", tarfile.FIFOTYPE),
        member("out/folder", tarfile.DIRTYPE),
        member("out/folder/file"),
        member("out/contiguous", tarfile.CONTTYPE),
        member("out/sparse", tarfile.GNUTYPE_SPARSE),
        member("out/../evil"),
        member("../evil"),
        member("/evil"),
        member("evil"),
        member("out/"),
        member("out/.."),
        member("out/."),
        member("out/a b"),
        member("out/-\n"),
        member("out/é"),
        member("out/" + "x" * 101),
        member("out/" + "x" * 5000),
    ],
    ids=lambda info: f"{info.type.decode()}-{info.name[:12]!r}",
)
def test_anything_but_a_plain_file_is_refused(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    data = archive([TOP, (bad, b"")])
    with pytest.raises(LearnerError) as caught:
        read_outputs(cut(data, 1000), tmp_path, LIMITS)
    assert caught.value.status is Status.PROTOCOL_ERROR
    assert list(tmp_path.iterdir()) == []
    assert len(caught.value.message) < 700


def test_a_name_comes_once(tmp_path: Path) -> None:
    data = archive([TOP, (member("out/a"), b"1"), (member("out/a"), b"2")])
    with pytest.raises(LearnerError, match="twice"):
        read_outputs(cut(data, 1000), tmp_path, LIMITS)


def test_sizes_are_judged_before_they_are_read(tmp_path: Path) -> None:
    """The claim alone is enough: the bytes behind it never come."""
    for size, words in ((60_000, "longest file"), (1 << 62, "longest file")):
        info = member("out/a")
        info.size = size
        data = archive([TOP])[:512] + info.tobuf(tarfile.GNU_FORMAT)
        with pytest.raises(LearnerError, match=words) as caught:
            read_outputs(cut(data, 512), tmp_path, LIMITS)
        assert caught.value.status is Status.STATE_TOO_LARGE


@pytest.mark.parametrize(
    ("count", "size", "words"), [(9, 1, "8 files"), (3, 40_000, "100000 bytes")], ids=["files", "bytes"]
)
def test_the_whole_output_is_capped(tmp_path: Path, count: int, size: int, words: str) -> None:
    data = archive([TOP, *((member(f"out/f{i}"), bytes(size)) for i in range(count))])
    with pytest.raises(LearnerError, match=words) as caught:
        read_outputs(cut(data, 5000), tmp_path, LIMITS)
    assert caught.value.status is Status.STATE_TOO_LARGE
    with pytest.raises(LearnerError, match=words):
        weigh_outputs(cut(data, 5000), LIMITS)


def test_weighing_writes_nothing_and_passes_what_fits(tmp_path: Path) -> None:
    weigh_outputs(cut(archive([TOP, (member("out/f"), bytes(50_000))]), 700), LIMITS)
    assert list(tmp_path.iterdir()) == []


@FEW
@given(st.data())
def test_a_damaged_stream_never_does_more_than_raise(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(archive([TOP, (member("out/a"), b"x" * 700), (member("out/" + "y" * 100), b"z" * 20)]))
    for _ in range(data.draw(st.integers(0, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(whole)))
    root = tmp_path_factory.mktemp("root")
    (root / "out").mkdir()
    with contextlib.suppress(LearnerError, InfrastructureError):
        read_outputs(cut(bytes(whole[:end]), 333), root / "out", LIMITS)
    assert [path.name for path in root.iterdir()] == ["out"]
    assert all(path.is_file() and not path.is_symlink() for path in (root / "out").iterdir())


@pytest.mark.parametrize("end", [0, 100, 512, 700, 1024, 1500, 3000, 3500])
def test_a_stream_that_ends_early_is_the_machines_fault(tmp_path: Path, end: int) -> None:
    data = archive([TOP, (member("out/a"), bytes(2000))])  # 512 + 512 + 2048 bytes, then the end's own blocks
    with pytest.raises(InfrastructureError, match="ends early"):
        read_outputs(cut(data[:end], 100), tmp_path, LIMITS)


def test_a_header_whose_checksum_is_wrong_is_the_machines_fault(tmp_path: Path) -> None:
    data = bytearray(archive([TOP]))
    data[5] ^= 1
    with pytest.raises(InfrastructureError, match="checksum"):
        read_outputs(cut(bytes(data), 512), tmp_path, LIMITS)
