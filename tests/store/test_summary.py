"""Figures of an entry, against arithmetic done here."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.errors import StoreError
from suite.status import Status
from suite.store import EntrySummary, TrialRecord, difference, summarise_run
from tests.store.factory import TRACK, stored, write_run

Made = Callable[..., EntrySummary]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    def make(submission: str = "mine", **options: Any) -> EntrySummary:
        return summarise_run(stored(write_run(tmp_path, submission, **options)))

    return make


def by_hand(trial: TrialRecord) -> tuple[float, float]:
    curve = [sum(t.correct) / sum(t.total) for t in trial.tasks]
    return curve[-1], sum(curve) / len(curve)


def test_means_and_standard_deviations_are_over_seeds(made: Made) -> None:
    entry = made()
    assert [s.data_set for s in entry.evaluation] == ["toys-2", "tools"]
    for result in entry.evaluation:
        finals, averages = zip(*map(by_hand, result.seeds), strict=True)
        assert result.acc is not None
        assert result.avg_acc is not None
        assert result.acc.mean == pytest.approx(statistics.mean(finals))
        assert result.acc.std == pytest.approx(statistics.stdev(finals))
        assert result.avg_acc.mean == pytest.approx(statistics.mean(averages))
        assert result.avg_acc.std == pytest.approx(statistics.stdev(averages))
        assert result.acc.n == 2
        assert result.score == pytest.approx(
            statistics.harmonic_mean([statistics.mean(finals), statistics.mean(averages)])
        )


def test_the_score_is_the_mean_over_evaluation_sets(made: Made) -> None:
    entry = made()
    assert entry.score == pytest.approx(statistics.mean(s.score or 0.0 for s in entry.evaluation))
    assert entry.status is Status.OK
    assert entry.unranked_because == []


def test_a_failed_seed_makes_its_set_read_failed_and_stays_visible(made: Made) -> None:
    entry = made(failed={("tools", 1): Status.DIVERGED})
    good, bad = entry.evaluation
    assert good.acc is not None
    assert (bad.acc, bad.avg_acc, bad.score, bad.status) == (None, None, None, Status.DIVERGED)
    assert [t.status for t in bad.seeds] == [Status.OK, Status.DIVERGED]
    assert [t.key.seed_index for t in bad.failed] == [1]
    assert (entry.score, entry.status, entry.learn_seconds) == (None, Status.DIVERGED, None)
    assert "an evaluation set failed" in entry.unranked_because


def test_a_draw_with_a_failed_seed_is_not_eligible_and_is_listed(made: Made) -> None:
    entry = made(failed_draws=[0])
    assert [d.draw for d in entry.draws] == [0, 1, 2]
    assert [d.result.score is None for d in entry.draws] == [True, False, False]
    assert entry.selection is not None
    assert entry.selection.draw == 1
    assert entry.tuning is not None
    assert entry.tuning.score == pytest.approx(entry.selection.score)


def test_no_eligible_draw_fails_the_entry_with_the_kind(made: Made) -> None:
    entry = made(failed_draws=[0, 1, 2])
    assert entry.status is Status.DIVERGED
    assert entry.tuning is None
    assert entry.unranked_because != []


def test_missing_trials_are_not_a_failure_but_leave_no_mean(tmp_path: Path) -> None:
    run = stored(write_run(tmp_path))
    lost = next(t for t in run.trials if t.key.data_set == "tools")
    entry = summarise_run(replace(run, trials=[t for t in run.trials if t != lost], entry=None))
    assert entry.evaluation[1].status is Status.INTERRUPTED
    assert entry.evaluation[1].acc is None
    assert entry.status is Status.INTERRUPTED
    assert entry.unranked_because == ["it is not complete"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"isolation": "none"}, "without isolation"),
        ({"hyperparameters": {"lr": 0.5, "scheduler": "step"}}, "given, not tuned"),
        ({"unranked_because": ["the track has changed since"]}, "the track has changed since"),
    ],
)
def test_what_is_not_ranked_says_why(made: Made, options: dict[str, Any], reason: str) -> None:
    assert any(reason in because for because in made(**options).unranked_because)


def test_given_hyperparameters_have_no_tuning_figures(made: Made) -> None:
    entry = made(hyperparameters={"lr": 0.5, "scheduler": "step"})
    assert entry.tuning is None
    assert entry.draws == []
    assert entry.score is not None


def test_parameters_and_times_are_means_over_seeds_per_task(made: Made) -> None:
    result = made().evaluation[0]
    assert [t.task for t in result.tasks] == [0, 1, 2]
    assert [t.stored_parameters for t in result.tasks] == [200, 400, 600]
    for task in result.tasks:
        records = [trial.tasks[task.task] for trial in result.seeds]
        assert task.train_seconds == pytest.approx(statistics.mean(r.resources.train_seconds for r in records))
        assert task.peak_memory_bytes == max(r.resources.peak_memory_bytes or 0 for r in records)
        assert task.peak_gpu_bytes is None
        assert task.acc.mean == pytest.approx(statistics.mean(sum(r.correct) / sum(r.total) for r in records))
    totals = [sum(t.resources.train_seconds + t.resources.post_seconds for t in trial.tasks) for trial in result.seeds]
    assert result.learn_seconds is not None
    assert result.learn_seconds.mean == pytest.approx(statistics.mean(totals))


def test_the_difference_is_tuning_minus_evaluation(made: Made) -> None:
    entry = made()
    assert entry.tuning is not None
    assert entry.tuning.acc is not None
    last = entry.evaluation[1].acc
    assert last is not None
    found = difference(entry.tuning.acc, last)
    assert found == entry.tuning.acc.mean - last.mean
    assert found > 0.1
    assert difference(entry.tuning.acc, None) is None


def test_a_draw_that_repeats_an_earlier_one_is_found_by_its_values(tmp_path: Path) -> None:
    run = stored(write_run(tmp_path))
    assert run.selection is not None
    entry = summarise_run(replace(run, selection=run.selection.model_copy(update={"draw": 7})))
    assert entry.tuning is not None
    assert entry.tuning.seeds[0].draw == 0


@pytest.mark.parametrize("snapshot", ["{}", "[]", "no json", '{"name": "x", "draws": 0}'])
def test_an_unreadable_snapshot_is_a_store_error(made: Made, snapshot: str) -> None:
    with pytest.raises(StoreError, match="snapshot of its track"):
        made(track_snapshot=snapshot)


def test_fields_that_a_later_track_adds_are_passed_over(made: Made) -> None:
    assert made(track_data=TRACK | {"invented": [1, 2]}).track.title == TRACK["title"]
