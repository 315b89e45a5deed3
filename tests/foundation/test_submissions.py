"""Submission manifests: the shipped ones are sound, hostile and mistaken ones are refused in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from suite.errors import ManifestError
from suite.submissions import SLUG, Submission, read_submission, read_submissions, slug_of_image
from suite.tracks import track_names

SHIPPED = Path(__file__).parents[2] / "submissions"
GOOD: dict[str, Any] = {
    "slug": "my-method",
    "title": "My method",
    "authors": ["A. Author"],
    "image": "registry.example:5000/group/my-method:1.0",
    "group": "scratch",
    "source": "containers/examples/ncm",
}


def toml(values: dict[str, Any]) -> str:
    return "\n".join(f"{k} = {v!r}" if isinstance(v, list) else f'{k} = "{v}"' for k, v in values.items())


def test_every_shipped_manifest_is_sound() -> None:
    for slug, submission in read_submissions(SHIPPED).items():
        assert submission.slug == slug
        assert set(submission.tracks) <= set(track_names())
        if not submission.source.startswith("https://"):
            assert (SHIPPED.parent / submission.source).exists()


def test_a_manifest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "my-method.toml"
    path.write_text(toml(GOOD))
    assert read_submission(path) == Submission(**GOOD)
    assert read_submissions(tmp_path) == {"my-method": Submission(**GOOD)}
    assert read_submissions(tmp_path / "none") == {}


BAD: list[tuple[str, Any]] = [
    ("slug", ""),
    ("slug", "My-Method"),
    ("slug", "-x"),
    ("slug", "a/b"),
    ("slug", ".."),
    ("slug", "a\n"),
    ("slug", "a" * 64),
    ("slug", "é"),
    ("title", ""),
    ("title", "x" * 81),
    ("title", "red \x1b[31m"),
    ("title", "two\nlines"),
    ("title", "turned \u202e round"),
    ("description", "bell \x07"),
    ("authors", []),
    ("authors", [""]),
    ("authors", ["A\x00"]),
    ("authors", "A. Author"),
    ("image", "--privileged"),
    ("image", "a b"),
    ("image", "a;rm -rf /"),
    ("image", "$(id)"),
    ("image", "a\n"),
    ("image", ""),
    ("group", "both"),
    ("kind", "winner"),
    ("source", "javascript:alert(1)"),
    ("source", "http://example.org"),
    ("source", "https://a\"onclick='x"),
    ("source", "https://a<script>"),
    ("source", "https://a b"),
    ("source", "/etc"),
    ("source", "containers/../../etc"),
    ("source", "containers/.."),
    ("paper_url", "javascript:alert(1)"),
    ("paper_url", "data:text/html,x"),
    ("tracks", ["../x"]),
    ("unknown", "x"),
]


@pytest.mark.parametrize(("field", "value"), BAD)
def test_what_no_page_or_command_should_see_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=field):
        Submission(**{**GOOD, field: value})


@pytest.mark.parametrize("field", ["slug", "title", "authors", "image", "group", "source"])
def test_what_is_needed_is_named_when_missing(field: str, tmp_path: Path) -> None:
    path = tmp_path / "my-method.toml"
    path.write_text(toml({k: v for k, v in GOOD.items() if k != field}))
    with pytest.raises(ManifestError, match=rf"my-method\.toml: {field}: Field required"):
        read_submission(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"title = ", b"\xff\xfe", b"x = " + b"[" * 5000, b"x = " + b"9" * 5000, b"a = 1\na = 2", b"\x00"],
)
def test_what_is_no_manifest_gives_one_line_with_a_remedy(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "my-method.toml"
    path.write_bytes(content)
    with pytest.raises(ManifestError) as caught:
        read_submission(path)
    assert "my-method.toml" in caught.value.message
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_the_file_is_called_after_the_slug(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text(toml(GOOD))
    with pytest.raises(ManifestError, match=r"my-method\.toml"):
        read_submission(path)


def test_a_file_that_is_not_there_is_a_manifest_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read"):
        read_submission(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("image", "slug"),
    [
        ("suite-reference:der", "suite-reference-der"),
        ("ncm", "ncm"),
        ("ncm:latest", "ncm"),
        ("localhost:5000/group/My_Method:1.0", "my-method-1-0"),
        ("ncm@sha256:" + "0" * 64, "ncm"),
        ("///", "submission"),
        ("_", "submission"),
    ],
)
def test_a_slug_is_made_from_an_image(image: str, slug: str) -> None:
    assert slug_of_image(image) == slug


@given(st.text())
def test_a_slug_made_from_anything_is_a_slug(image: str) -> None:
    assert re.fullmatch(SLUG.strip("^$"), slug_of_image(image))
