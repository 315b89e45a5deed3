"""Bad input gets one line that says what is wrong and what to do, with its exit code, and no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite.data import data_root, registry

NCM = Path(__file__).parents[2] / "containers" / "examples" / "ncm" / "ncm.py"
LEARNER = f"{NCM}:NearestClassMean"


def one_line(err: str) -> str:
    """The line a user reads; progress lines may stand before it."""
    lines = [line for line in err.splitlines() if line.startswith("suite: ")]
    assert len(lines) == 1, err
    assert "Traceback" not in err
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["submit", "x", "--track", "digit-smoke"], 3, "Did you mean 'digits-smoke'?"),
        (["submit", "x", "--track", "nowhere.toml"], 3, "There is no track file"),
        (["submit", "x", "--track", "digits-smoke", "--sandbox", "chroot"], 3, "Choose one of docker"),
        (["check", "nothing.py:Mine"], 5, "nothing.py"),
        (["track", "show", "nope"], 3, "suite track list"),
        (["data", "prepare", "nope"], 4, "nope"),
        (["data", "prepare", "CUB-200"], 4, "--from"),
        (["data", "verify", "CUB-200"], 4, "CUB-200"),
        (["data", "prepare", "digits", "letters-1", "--from", "x"], 3, "one by one"),
        (["new", "Not A Name"], 3, "lower-case"),
        (["results", "export", "out", "--format", "xlsx"], 3, "parquet"),
    ],
)
def test_it_says_what_to_do(
    suite: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUITE_DATA", str(tmp_path / "data"))
    ran = suite(*arguments)
    assert ran.code == code, ran.err
    assert words in one_line(ran.err)


def test_a_track_of_the_paper_says_exactly_what_to_prepare(suite: Any, tmp_path: Path) -> None:
    ran = suite("submit", "x", "--track", "gtep-scratch-cifar-50-1-10", "--data", tmp_path)
    assert ran.code == 4
    assert "suite data prepare CIFAR" in one_line(ran.err)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "is not TOML"),
        ('name = "x"', "title"),
        ('name = "Bad Name"', "name"),
    ],
)
def test_a_malformed_track_names_the_place(suite: Any, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    ran = suite("track", "show", path)
    assert ran.code == 3
    assert words in one_line(ran.err)


def test_a_damaged_data_set_is_found(suite: Any, tmp_path: Path) -> None:
    registry.prepare("digits", data_root(tmp_path))
    (file, *_) = sorted(tmp_path.rglob("train/*.npy"))
    file.chmod(0o644)
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    ran = suite("data", "verify", "digits", "--data", tmp_path)
    assert ran.code == 4
    assert "differs from its manifest" in one_line(ran.err)


def test_hyperparameters_that_do_not_fit_are_named(suite: Any, tmp_path: Path) -> None:
    path = tmp_path / "point.json"
    path.write_text(json.dumps({"lr": 1}))
    ran = suite(
        "submit",
        LEARNER,
        "-t",
        "digits-smoke",
        "--sandbox",
        "process",
        "--hyperparameters",
        path,
        "--results",
        tmp_path,
    )
    assert ran.code == 3
    assert "lr is not a hyperparameter" in one_line(ran.err)


def test_a_full_disk_is_said_before_anything_starts(
    suite: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suite.evaluation.reserve.shutil.disk_usage", lambda _path: SimpleNamespace(free=0))
    ran = suite("submit", LEARNER, "-t", "digits-smoke", "--sandbox", "process", "--results", tmp_path)
    assert ran.code == 6
    assert "--results" in one_line(ran.err)


def test_results_that_cannot_be_written(suite: Any, tmp_path: Path) -> None:
    occupied = tmp_path / "results"
    occupied.write_text("a file, not a folder")
    ran = suite("submit", LEARNER, "-t", "digits-smoke", "--sandbox", "process", "--results", occupied)
    assert ran.code == 7
    assert "--results" in one_line(ran.err)


def test_a_locked_store_names_its_holder(suite: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = textwrap.dedent(
        f"""
        import sys
        from pathlib import Path
        from suite.store.database import writing
        with writing(Path({str(tmp_path)!r})):
            print("held", flush=True)
            sys.stdin.read()
        """
    )
    monkeypatch.setattr("suite.store.results.Results.__init__.__defaults__", (0.2,))
    with subprocess.Popen([sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        ran = suite("results", "sql", "SELECT 1", "--results", tmp_path)
        process.stdin.close()
        process.stdout.read()
    assert ran.code == 7
    assert f"process {process.pid}" in one_line(ran.err)


@pytest.mark.docker
def test_an_image_that_is_missing(suite: Any, tmp_path: Path) -> None:
    ran = suite("submit", "no-such-image:latest", "-t", "digits-smoke", "--results", tmp_path)
    assert ran.code == 5
    assert "no-such-image" in one_line(ran.err)


@pytest.mark.docker
def test_an_image_that_is_no_learner(suite: Any, tmp_path: Path) -> None:
    ran = suite("submit", "python:3.11-slim-bookworm", "-t", "digits-smoke", "--results", tmp_path)
    assert ran.code == 5
    assert "suite build" in one_line(ran.err)


def test_an_unforeseen_error_is_one_line_and_can_be_looked_into(suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode() -> list[str]:
        raise ValueError("boom")

    monkeypatch.setattr("suite.tracks.track_names", explode)
    ran = suite("track", "list")
    assert ran.code == 1
    assert "SUITE_DEBUG=1" in one_line(ran.err)
