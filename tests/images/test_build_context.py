"""What goes to the engine: the author's files, filtered and normalised."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from suite.errors import ImageError
from suite.sandbox.images.base import base_variants
from suite.sandbox.images.context import write_context


@pytest.fixture
def author(tmp_path: Path) -> Path:
    folder = tmp_path / "author"
    (folder / "package" / "__pycache__").mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM continual-suite/base-numpy\n")
    (folder / "learner.py").write_text("print()\n")
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"x")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("x")
    return folder


def packed(folder: Path, extra: dict[str, Path] | None = None) -> bytes:
    out = io.BytesIO()
    write_context(folder, out, extra)
    return out.getvalue()


def unpacked(archive: bytes) -> tarfile.TarFile:
    return tarfile.TarFile(fileobj=io.BytesIO(archive))


def names(archive: bytes) -> list[str]:
    return unpacked(archive).getnames()


def test_caches_and_version_control_stay_out(author: Path) -> None:
    assert names(packed(author)) == ["Dockerfile", "learner.py", "package", "package/__init__.py"]


def test_the_authors_dockerignore_is_honoured_but_the_dockerfile_goes(author: Path) -> None:
    (author / ".dockerignore").write_text("# notes\n\n*\n!learner.py\n")
    assert names(packed(author)) == ["Dockerfile", "learner.py"]


def test_equal_content_gives_equal_bytes_whatever_times_and_owner(author: Path) -> None:
    before = packed(author)
    (author / "learner.py").chmod(0o600)
    for path in author.rglob("*"):
        os.utime(path, (5, 5))
    assert packed(author) == before


def test_the_executable_bit_counts(author: Path) -> None:
    before = packed(author)
    (author / "learner.py").chmod(0o755)
    assert packed(author) != before


def test_links_stay_links(author: Path) -> None:
    (author / "link").symlink_to("/etc/passwd")
    member = unpacked(packed(author)).getmember("link")
    assert (member.issym(), member.linkname) == (True, "/etc/passwd")


def test_extra_files_are_added_under_their_name(author: Path, tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"wheel")
    member = unpacked(packed(author, {"wheels/a.whl": tmp_path / "a.whl"})).extractfile("wheels/a.whl")
    assert member is not None
    assert member.read() == b"wheel"


def test_an_extra_file_never_replaces_the_authors(author: Path) -> None:
    with pytest.raises(ImageError, match=r"learner\.py"):
        packed(author, {"learner.py": author / "Dockerfile"})


def test_a_folder_without_dockerfile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no Dockerfile"):
        packed(tmp_path)


def test_special_files_are_refused(author: Path) -> None:
    os.mkfifo(author / "pipe")
    with pytest.raises(ImageError, match="pipe"):
        packed(author)


@pytest.mark.parametrize(
    ("dockerfile", "expected"),
    [
        ("FROM continual-suite/base-numpy\n", {"numpy"}),
        ("# comment\nfrom continual-suite/base-torch:1.0 as build\nFROM scratch\n", {"torch"}),
        ("FROM continual-suite/base-torch AS a\nFROM continual-suite/base-numpy\n", {"numpy", "torch"}),
        ("FROM --platform=linux/amd64 continual-suite/base-torch\n", {"torch"}),
        ("FROM debian\n# FROM continual-suite/base-torch\n", set()),
        ("FROM continual-suite/base-numpysomething\n", set()),
    ],
)
def test_base_images_are_read_from_the_from_lines(dockerfile: str, expected: set[str]) -> None:
    assert base_variants(dockerfile) == expected
