"""Places, changes of place and margins between entries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from suite.protocol import Manifest
from suite.status import Status
from suite.store import Board, Journal, Machine, boards, run_directories, summarise_run
from tests.store.factory import SPACE, START, TRACK, info, lock, stored, write_run

Boards = Callable[[], list[Board]]


@pytest.fixture
def found(tmp_path: Path) -> Boards:
    def read() -> list[Board]:
        runs = [stored(Journal(folder)) for folder in run_directories(tmp_path)]
        return boards([summarise_run(run) for run in runs])

    return read


def names(board: Board) -> list[tuple[int | None, str]]:
    return [(s.rank, s.summary.info.lock.submission) for s in board.standings]


def test_no_entries_give_no_boards() -> None:
    assert boards([]) == []


def test_entries_are_ranked_by_score_over_the_evaluation_sets(tmp_path: Path, found: Boards) -> None:
    for name, skill in [("weak", 0.5), ("strong", 0.9), ("replay", 0.7)]:
        write_run(tmp_path, name, skill=skill)
    (board,) = found()
    assert names(board) == [(1, "strong"), (2, "replay"), (3, "weak")]
    assert [s.tuning_rank for s in board.standings] == [1, 2, 3]
    assert [s.rank_change for s in board.standings] == [0, 0, 0]
    assert [s.set_ranks for s in board.standings] == [{"toys-2": r, "tools": r} for r in (1, 2, 3)]


def test_a_change_of_rank_counts_places_won_in_evaluation(tmp_path: Path, found: Boards) -> None:
    write_run(tmp_path, "steady", skill=0.8)
    overtuned = TRACK | {"evaluation": TRACK["evaluation"]}
    journal = write_run(tmp_path, "overtuned", skill=0.85, track_data=overtuned)
    for trial in journal.trials():  # its evaluation went badly
        if trial.key.phase == "evaluation":
            worse = [t.model_copy(update={"correct": [c // 2 for c in t.correct]}) for t in trial.tasks]
            (journal.directory / "trials" / trial.id / "trial.json").unlink()
            journal.end_trial(trial.model_copy(update={"tasks": worse}))
    (board,) = found()
    assert names(board) == [(1, "steady"), (2, "overtuned")]
    assert [s.tuning_rank for s in board.standings] == [2, 1]
    assert [s.rank_change for s in board.standings] == [1, -1]


def test_margins_are_over_replay_in_each_phase(tmp_path: Path, found: Boards) -> None:
    write_run(tmp_path, "replay", skill=0.6)
    write_run(tmp_path, "mine", skill=0.8)
    (board,) = found()
    mine, replay = board.standings
    assert board.has_baseline
    assert mine.summary.tuning is not None
    assert replay.summary.tuning is not None
    assert mine.summary.tuning.acc is not None
    assert replay.summary.tuning.acc is not None
    assert mine.margin.tuning == mine.summary.tuning.acc.mean - replay.summary.tuning.acc.mean
    assert mine.margin.evaluation["tools"] == pytest.approx(0.2, abs=0.1)
    assert replay.margin.tuning is None
    assert set(replay.margin.evaluation.values()) == {None}


def test_without_replay_there_are_no_margins(tmp_path: Path, found: Boards) -> None:
    write_run(tmp_path, "mine")
    (board,) = found()
    assert not board.has_baseline
    assert board.standings[0].margin.tuning is None


def test_what_may_not_be_ranked_takes_no_place(tmp_path: Path, found: Boards) -> None:
    write_run(tmp_path, "ok", skill=0.3)
    write_run(tmp_path, "naked", isolation="none")
    write_run(tmp_path, "preset", hyperparameters={"lr": 0.1, "scheduler": "step"})
    write_run(tmp_path, "joint", manifest=Manifest(name="joint", space=SPACE, privileges=["past_data"]))
    write_run(tmp_path, "broken", failed={("tools", 0): Status.OUT_OF_MEMORY})
    (board,) = found()
    assert names(board) == [(1, "ok"), (None, "broken"), (None, "joint"), (None, "naked"), (None, "preset")]
    assert all(s.summary.unranked_because for s in board.standings[1:])


def test_equal_scores_share_a_place(tmp_path: Path, found: Boards) -> None:
    first = write_run(tmp_path, "first", fingerprint="a" * 64)
    second = write_run(tmp_path, "second", fingerprint="a" * 64)
    write_run(tmp_path, "third", skill=0.4)
    assert [t.tasks for t in first.trials()] == [t.tasks for t in second.trials()]
    (board,) = found()
    assert names(board) == [(1, "first"), (1, "second"), (3, "third")]


def test_other_tracks_and_versions_are_other_boards(tmp_path: Path, found: Boards) -> None:
    write_run(tmp_path, "a", started=START)
    write_run(tmp_path, "b", started=START, suite_version="0.1.9")
    write_run(tmp_path, "c", started=START + timedelta(days=1), suite_version="0.2.0")
    write_run(tmp_path, "d", started=START, track_data=TRACK | {"seeds": 1})
    write_run(tmp_path, "e", started=START, track_data=TRACK | {"name": "another"})
    made = found()
    assert [(b.track.name, b.version, sorted(n for _, n in names(b))) for b in made][:2] == [
        ("another", "0.1", ["e"]),
        ("toy-3", "0.2", ["c"]),
    ]
    assert sorted(sorted(n for _, n in names(b)) for b in made[2:]) == [["a", "b"], ["d"]]


def test_the_latest_rankable_run_of_a_submission_counts(tmp_path: Path, found: Boards) -> None:
    write_run(tmp_path, "mine", started=START, image="mine:1")
    write_run(tmp_path, "mine", started=START + timedelta(days=1), image="mine:2")
    failed = {("tools", 0): Status.CRASHED}
    write_run(tmp_path, "mine", started=START + timedelta(days=2), image="mine:3", failed=failed)
    (board,) = found()
    assert [s.summary.info.lock.image for s in board.standings] == ["mine:2"]
    assert [e.info.lock.image for e in board.superseded] == ["mine:3", "mine:1"]


def test_times_are_ranked_from_exclusive_slots_on_like_machines(tmp_path: Path, found: Boards) -> None:
    write_run(tmp_path, "one")
    write_run(tmp_path, "two")
    shared = write_run(tmp_path, "three")
    for trial in shared.trials():
        (shared.directory / "trials" / trial.id / "trial.json").unlink()
        shared.end_trial(trial.model_copy(update={"is_exclusive": False}))
    (board,) = found()
    times = {s.summary.info.lock.submission: (s.time_rank, s.summary.learn_seconds) for s in board.standings}
    assert times["three"][0] is None
    assert times["three"][1] is not None
    fastest = min(("one", "two"), key=lambda name: times[name][1] or 0.0)
    assert times[fastest][0] == 1


def test_times_of_different_machines_are_not_ranked(tmp_path: Path, found: Boards) -> None:
    write_run(tmp_path, "one")
    write_run(tmp_path, "two", info_changes={"machine": Machine(cpu="Another CPU")})
    (board,) = found()
    assert [s.time_rank for s in board.standings] == [None, None]
    assert info(lock()).machine.cpu != "Another CPU"
