"""The built site: sound, self-contained, complete, and honest about failures."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from suite.errors import UsageError
from suite.metrics import Summary
from suite.protocol import Manifest
from suite.site import build
from suite.site.charts import accuracy_curves, phase_dots
from suite.status import Status
from suite.store import EntrySummary, Machine, boards, merge
from suite.tracks import track_names
from tests.site.page_checks import Page, check_site
from tests.store.factory import SPACE, TRACK, write_run

HOSTILE = (
    "\"><script src='https://evil.example/x.js'>alert(1)</script><img src=x onerror=alert(1)>"
    "'}}{{7*7}}{%raw%}</style></svg>]]>&lt;\u202e\x1b[31m\x00=cmd()"
)


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[str, Page]:
    return check_site(site)


def run_of(entries: list[EntrySummary], submission: str) -> EntrySummary:
    """The latest run of a submission on the first track."""
    return next(e for e in entries if e.info.lock.submission == submission and e.track.name == "toy-3")


# --- soundness --------------------------------------------------------------------------------------------------------


def test_every_page_is_sound_and_every_link_leads_somewhere(pages: dict[str, Page]) -> None:
    assert {path.split("/")[0] for path in pages} == {"index.html", "tracks", "runs", "submissions"}
    assert len([p for p in pages if p.startswith("runs/")]) == 9


def test_no_file_fetches_anything_from_elsewhere(site: Path) -> None:
    for file in site.rglob("*"):
        if file.suffix in {".css", ".js"}:
            assert "//" not in re.sub(r"^\s*//.*$", "", file.read_text(), flags=re.MULTILINE), file
        if file.suffix == ".html":
            text = file.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
            assert "http://" not in text, file


def test_pages_stay_small(site: Path) -> None:
    assert all(file.stat().st_size < 300_000 for file in site.rglob("*.html"))


def test_equal_results_give_equal_bytes(results: Path, submissions: Path, site: Path, tmp_path: Path) -> None:
    again = build(results, tmp_path / "again", submissions).parent
    first = {f.relative_to(site): f.read_bytes() for f in site.rglob("*") if f.is_file()}
    assert {f.relative_to(again): f.read_bytes() for f in again.rglob("*") if f.is_file()} == first


def test_an_empty_results_folder_gives_a_site_of_tracks(tmp_path: Path) -> None:
    index = build(tmp_path / "absent", tmp_path / "out" / "site")
    made = check_site(index.parent)
    assert "There are no results yet" in made["index.html"].words
    assert sorted(p for p in made if p.startswith("tracks/")) == sorted(f"tracks/{name}.html" for name in track_names())
    assert "No submission has been run on this track yet" in made[f"tracks/{track_names()[0]}.html"].words
    assert not (tmp_path / "absent").exists()


# --- content ----------------------------------------------------------------------------------------------------------


def test_the_index_names_the_leaders(pages: dict[str, Page]) -> None:
    words = pages["index.html"].words
    assert "Toys, three tasks" in words
    assert words.index("My method") < words.index("replay")
    assert "4 not ranked" in words
    assert "Another track" in words


def test_the_ranking_shows_means_and_deviations(pages: dict[str, Page], entries: list[EntrySummary]) -> None:
    words = pages["tracks/toy-3.html"].words
    entry = run_of(entries, "mine")
    for result in entry.evaluation:
        assert isinstance(result.acc, Summary)
        assert result.acc.std is not None
        assert f"{100 * result.acc.mean:.1f} ± {100 * result.acc.std:.1f}" in words


def test_differences_and_margins_are_shown_in_points(pages: dict[str, Page], entries: list[EntrySummary]) -> None:
    mine, replay = run_of(entries, "mine"), run_of(entries, "replay")
    words = pages["tracks/toy-3.html"].words
    assert mine.tuning
    assert mine.tuning.acc
    assert replay.evaluation[0].acc
    assert mine.evaluation[0].acc
    assert f"{100 * (mine.tuning.acc.mean - mine.evaluation[0].acc.mean):+.1f}" in words
    assert f"{100 * (mine.evaluation[0].acc.mean - replay.evaluation[0].acc.mean):+.1f}" in words


def test_failures_are_labelled_with_their_kind_and_reasons_are_given(pages: dict[str, Page]) -> None:
    words = pages["tracks/toy-3.html"].words
    assert "failed: out of memory" in words
    assert "failed: diverged" in words
    assert "failing : an evaluation set failed" in words
    assert "hopeless : no tuning draw was eligible" in words
    assert "preset : hyperparameters were given, not tuned" in words
    assert "joint : it was granted a privilege (past_data)" in words


def test_earlier_runs_and_other_versions_are_kept_apart(pages: dict[str, Page]) -> None:
    words = pages["tracks/toy-3.html"].words
    assert "Other runs of the same submissions" in words
    assert "mine:0" in words
    assert "Made with another version of the track or the suite (0.0" in words


def test_a_reduced_track_says_so(pages: dict[str, Page]) -> None:
    assert "Reduced track." in pages["tracks/toy-3.html"].words
    assert "Reduced track." not in pages["tracks/other.html"].words


def test_a_run_shows_choice_matrix_resources_and_provenance(
    pages: dict[str, Page], entries: list[EntrySummary]
) -> None:
    entry = run_of(entries, "mine")
    words = pages[f"runs/{entry.run}.html"].words
    assert "0.001 to 0.1, log-uniform" in words
    assert "after 3" in words
    assert "Task by task on toys-2" in words
    assert entry.info.lock.fingerprint in words
    assert all(str(t.scenario_seed) in words for r in entry.evaluation for t in r.seeds)
    assert "Toy CPU" in words
    assert "suite submit mine:1 --track toy-3" in words
    assert "https://example.org/paper" in [href for _, href in pages["submissions/mine.html"].hrefs]


def test_the_matrix_is_the_mean_over_seeds(pages: dict[str, Page], entries: list[EntrySummary]) -> None:
    result = run_of(entries, "mine").evaluation[0]
    page = pages[f"runs/{run_of(entries, 'mine').run}.html"]
    cells = [[t.correct[0] / t.total[0] for t in trial.tasks] for trial in result.seeds]
    for task in range(3):
        assert f"{100 * sum(c[task] for c in cells) / len(cells):.1f}" in page.words


def test_a_failed_trial_shows_its_message_and_log(pages: dict[str, Page], entries: list[EntrySummary]) -> None:
    words = pages[f"runs/{run_of(entries, 'failing').run}.html"].words
    assert "Evaluation on tools, seed 2 failed: out of memory" in words
    assert "The learner out of memory in task 2." in words
    assert "Traceback: made up" in words


def test_every_table_can_be_downloaded(site: Path, entries: list[EntrySummary]) -> None:
    rows = list(csv.DictReader(io.StringIO((site / "data/track-toy-3-ranking.csv").read_text())))
    raw = json.loads((site / "data/track-toy-3-ranking.json").read_text())
    mine = run_of(entries, "mine").evaluation[0].acc
    assert mine is not None
    assert [r["submission"] for r in rows] == [r["submission"] for r in raw]
    assert float(rows[0]["toys-2:acc_mean"]) == raw[0]["toys-2:acc_mean"] == mine.mean
    assert rows[0]["rank"] == "1"
    assert [r["status"] for r in raw] == ["ok", "ok", "out_of_memory", "diverged", "ok", "ok"]


# --- hostile text -----------------------------------------------------------------------------------------------------


def test_hostile_text_in_every_field_stays_text(tmp_path: Path) -> None:
    track: dict[str, Any] = TRACK | {
        "name": f"track {HOSTILE}",
        "title": f"title {HOSTILE}",
        "summary": f"summary {HOSTILE * 100}",
        "group": HOSTILE,
        "scenario": HOSTILE,
        "tuning": {"data_set": f"tuned {HOSTILE}"},
        "evaluation": [
            {"data_set": f"set {HOSTILE}", "similarity": HOSTILE},
            {"data_set": "tuning", "similarity": "low"},
        ],
    }
    manifest = Manifest(name="x", description=HOSTILE, space=SPACE)
    journal = write_run(
        tmp_path,
        f"submission {HOSTILE}",
        track_data=track,
        manifest=manifest,
        image=HOSTILE,
        fingerprint=HOSTILE,
        isolation=HOSTILE,
        unranked_because=[HOSTILE],
        failed={("tuning", 1): Status.CRASHED},
        failed_draws=[2],
        info_changes={
            "versions": {HOSTILE: HOSTILE},
            "argv": [HOSTILE],
            "machine": Machine(cpu=HOSTILE, gpu=HOSTILE, driver=HOSTILE, kernel=HOSTILE, engine=HOSTILE),
            "source_commit": HOSTILE,
        },
    )
    for trial in journal.trials():
        tasks = [t.model_copy(update={"classes": [HOSTILE], "metrics": {HOSTILE: 1.0}}) for t in trial.tasks]
        changed = {"message": HOSTILE * 50, "log_tail": HOSTILE * 1000, "tasks": tasks}
        (journal.directory / "trials" / trial.id / "trial.json").unlink()
        journal.end_trial(trial.model_copy(update=changed))
    write_run(tmp_path, "given", track_data=track, hyperparameters={HOSTILE: HOSTILE})
    site = build(tmp_path, tmp_path / "site").parent
    pages = check_site(site)
    for page in pages.values():
        assert not {"\x00", "\x1b", "\u202e"} & set(page.words)
    text = "".join(f.read_text() for f in site.rglob("*.html"))
    assert "<script src='https" not in text
    assert "<img" not in text
    assert ">49<" not in text
    assert "{{7*7}}" in text
    assert sorted(p.parent.name for p in site.rglob("x-*.html")) == ["submissions", "tracks"]
    for file in (site / "data").glob("*.csv"):
        cells = [c for row in csv.reader(io.StringIO(file.read_text(), newline="")) for c in row]
        assert not [c for c in cells if c.startswith(("=", "@"))]


# --- the folder -------------------------------------------------------------------------------------------------------


def test_a_rebuilt_site_replaces_the_old_one(tmp_path: Path) -> None:
    out = tmp_path / "site"
    build(tmp_path / "none", out)
    (out / "runs").mkdir()
    (out / "runs" / "stale.html").write_text("")
    build(tmp_path / "none", out)
    assert not (out / "runs").exists()
    assert sorted(f.name for f in tmp_path.iterdir()) == ["site"]


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("ten years of work")
    with pytest.raises(UsageError, match="something else"):
        build(tmp_path / "none", tmp_path)
    assert [f.name for f in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        build(tmp_path / "none", tmp_path / "file" / "site")


def test_a_database_without_journals_is_enough(results: Path, submissions: Path, site: Path, tmp_path: Path) -> None:
    merge(results)
    shutil.copy(results / "suite.duckdb", tmp_path / "suite.duckdb")
    again = build(tmp_path, tmp_path / "site", submissions).parent
    assert (again / "index.html").read_bytes() == (site / "index.html").read_bytes()


# --- charts -----------------------------------------------------------------------------------------------------------


def test_charts_carry_their_values_as_titles_and_no_style_of_their_own(entries: list[EntrySummary]) -> None:
    board = next(b for b in boards(entries) if b.track.name == "toy-3")
    dots = phase_dots(board, str.upper)
    assert dots is not None
    for word in ("<style", "<script", "<desc", "style=", " id=", "<!--"):
        assert word not in dots.svg
    assert ">MINE<" in dots.svg
    best = board.standings[0].summary.evaluation[0].acc
    assert best is not None
    assert f"{100 * best.mean:.1f} ± " in dots.svg
    assert phase_dots(board, str.upper) == dots


def test_a_chart_without_values_is_left_out(entries: list[EntrySummary]) -> None:
    hopeless = run_of(entries, "hopeless")
    assert accuracy_curves([("x", r) for r in hopeless.evaluation], "c") is None
