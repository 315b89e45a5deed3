"""Commands do what they say: the author's path, listings, schemas."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['suite', '--help']\n"
        "from suite.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'docker', 'duckdb', 'numpy', 'pydantic', 'sklearn', 'PIL', 'jinja2'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


def test_version(suite: Any) -> None:
    from suite import __version__

    assert suite("--version").out.strip() == __version__


def test_tracks_are_listed_with_what_they_tune_and_evaluate(suite: Any) -> None:
    listed = json.loads(suite("track", "list", "--json").out)
    by_name = {t["name"]: t for t in listed}
    assert by_name["digits-smoke"]["is_reduced"]
    assert by_name["glyphs-10"]["tuning"]["data_set"] == "letters-1:50"
    assert "digits-smoke" in suite("track", "list").out


def test_schemas_are_json(suite: Any) -> None:
    assert json.loads(suite("track", "schema").out)["title"] == "Track"
    published = json.loads((ROOT / "docs" / "protocol.schema.json").read_text())
    assert json.loads(suite("protocol", "schema").out) == published


def test_data_sets_are_listed(suite: Any, tmp_path: Path) -> None:
    names = {d["name"]: d for d in json.loads(suite("data", "list", "--json", "--data", tmp_path).out)}
    assert not names["digits"]["prepared"]
    assert suite("data", "prepare", "digits", "--data", tmp_path).code == 0
    names = {d["name"]: d for d in json.loads(suite("data", "list", "--json", "--data", tmp_path).out)}
    assert names["digits"]["prepared"]


@pytest.mark.parametrize("template", ["numpy", "torch"])
def test_what_new_writes_passes_the_conformance_pack(
    suite: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert suite("new", "my-learner", *(["--torch"] if template == "torch" else [])).code == 0
    monkeypatch.chdir(tmp_path / "my-learner")
    ran = suite("check", "learner.py:Mine")
    assert ran.code == 0, ran.out
    assert "FAILED" not in ran.out
    from suite.submissions import read_submission

    assert read_submission(Path("my-learner.toml")).slug == "my-learner"


def test_check_says_what_a_learner_lacks(suite: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "import numpy as np\n"
        "from suite.sdk import Learner\n"
        "class Bad(Learner):\n"
        "    def learn(self, task): self.n = max(task.classes) + 1\n"
        "    def predict(self, images): return np.tile(np.arange(len(images))[:, None] == 0, self.n) * 1.0\n"
        "    def state_dict(self): return {'n': self.n, 'notes': open}\n"
        "    def load_state_dict(self, state): self.n = state['n']\n"
    )
    ran = suite("check", f"{tmp_path}/bad.py:Bad")
    assert ran.code == 5
    assert "FAILED learns two tasks" in ran.out
    assert "state['notes']" in ran.out


def test_the_readme_shows_the_example_as_it_is() -> None:
    subprocess.run([sys.executable, ROOT / "tools" / "readme.py", "--check"], check=True, timeout=60)


def test_the_example_fits_the_promise() -> None:
    code = (ROOT / "containers" / "examples" / "ncm" / "ncm.py").read_text().splitlines()
    assert len(code) <= 45


def test_the_readme_states_the_exit_codes_of_the_error_tree() -> None:
    from suite import errors

    readme = (ROOT / "README.md").read_text()
    codes = {getattr(errors, n).exit_code for n in errors.__all__ if isinstance(getattr(errors, n), type)}
    assert all(f"| {code} |" in readme for code in codes | {errors.EXIT_ENTRY_FAILED})


def test_doctor_reports_line_by_line(suite: Any, tmp_path: Path) -> None:
    lines = json.loads(suite("doctor", "--json", "--data", tmp_path).out)
    assert {line["level"] for line in lines} <= {"ok", "warning", "problem"}
    assert all(line["remedy"] for line in lines if line["level"] != "ok")
    assert {"engine", "disk", "memory", "data"} <= {line["subject"] for line in lines}


def test_every_submission_is_valid_and_names_tracks_that_exist() -> None:
    from suite.submissions import read_submissions
    from suite.tracks import track_names

    submissions = read_submissions(ROOT / "submissions")
    assert {"ncm", "replay", "icarl", "simplecil"} <= set(submissions)
    for submission in submissions.values():
        assert set(submission.tracks) <= set(track_names())


def test_every_reference_learner_has_a_manifest() -> None:
    from reference.catalogue import METHODS

    from suite.submissions import read_submissions

    images = {s.image for s in read_submissions(ROOT / "submissions").values()}
    assert {f"suite-reference:{slug}" for slug in METHODS} <= images
