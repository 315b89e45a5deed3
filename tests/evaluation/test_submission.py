"""A submission from end to end, in this process: what is selected, stored, retried, resumed and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from lab import Lab  # type: ignore[import-not-found]

from suite.errors import InfrastructureError, Interrupted, SpaceError, StoreError, TrackError, UsageError
from suite.evaluation.bench import Stop
from suite.evaluation.events import NewRun, PhaseStarted, Retried, TaskDone, TrialDone, TrialStarted
from suite.sandbox import Step
from suite.status import Status
from suite.store import Journal, Results, run_directories


def export(results: Path, out: Path) -> dict[str, str]:
    """The comparable tables as text."""
    store = Results(results)
    store.refresh()
    return {p.name: p.read_text() for p in store.export("json", out, comparable=True)}


def undisturbed(lab: Lab) -> dict[str, str]:
    """The export of a run of `Good` in which nothing went wrong."""
    other = Lab(lab.folder / "other", lab.data, lab.learners, track=lab.track)
    other.folder.mkdir()
    other.submit("Good")
    return export(other.folder / "results", lab.folder / "b")


def journal(lab: Lab) -> Journal:
    (folder,) = run_directories(lab.folder / "results")
    return Journal(folder)


def test_a_learner_is_tuned_on_one_set_and_evaluated_unchanged_on_another(lab: Lab) -> None:
    entry = lab.submit("Good")
    assert entry.is_complete
    assert entry.data_sets == {"digits": Status.OK}
    trials = journal(lab).trials()
    tuning = [t for t in trials if t.key.phase == "tuning"]
    evaluation = [t for t in trials if t.key.phase == "evaluation"]
    assert {t.key.data_set for t in tuning} == {"letters-1:10"}
    assert {t.key.data_set for t in evaluation} == {"digits"}
    assert entry.selection is not None
    assert all(t.key.hyperparameters == entry.selection.hyperparameters for t in evaluation)
    assert {t.key.seed_index for t in evaluation} == {0, 1}
    assert all(t.tasks[-1].agreement == 1.0 for t in trials)
    assert all([len(r.correct) for r in t.tasks] == [1, 2, 3] for t in trials)


def test_the_same_command_again_does_nothing_again(lab: Lab) -> None:
    first = lab.submit("Good")
    lab.events.clear()
    assert lab.submit("Good") == first
    assert not [e for e in lab.events if isinstance(e, TrialStarted)]


def test_in_process_ranking_is_refused(lab: Lab) -> None:
    entry = lab.submit("Good")
    assert not entry.is_ranked
    assert "it ran without isolation" in entry.unranked_because


@pytest.mark.parametrize(
    ("learner", "status", "words"),
    [
        ("Diverges", Status.DIVERGED, "the loss is nan"),
        ("Crashes", Status.CRASHED, "ZeroDivisionError"),
        ("Nan", Status.DIVERGED, "NaN"),
        ("WrongShape", Status.PROTOCOL_ERROR, "shape"),
        ("Balances", Status.BATCH_DEPENDENT, "in other company"),
        ("Hoards", Status.STATE_TOO_LARGE, "state_bytes"),
        ("Undeclared", Status.PROTOCOL_ERROR, "state['secret']"),
        ("LiesAboutExemplars", Status.PROTOCOL_ERROR, "has not seen"),
    ],
)
def test_a_failing_learner_is_recorded_with_its_kind_and_words(
    lab: Lab, learner: str, status: Status, words: str
) -> None:
    entry = lab.submit(learner)
    assert not entry.is_complete
    assert entry.data_sets == {"digits": status}
    trials = journal(lab).trials()
    assert {t.status for t in trials} == {status}
    assert all(words in t.message for t in trials)
    assert {t.key.phase for t in trials} == {"tuning"}, "nothing is evaluated when no draw is eligible"


def test_a_draw_with_a_failed_seed_is_not_eligible(lab: Lab) -> None:
    lab.track = lab.track.replace("draws = 2", "draws = 6")
    entry = lab.submit("DivergesAtStride2")
    assert entry.is_complete
    assert entry.selection is not None
    assert entry.selection.hyperparameters == {"stride": 8}
    assert 0 < entry.selection.eligible_draws < entry.selection.draws == 6


def test_learning_longer_than_the_budget_is_timed_out_and_names_the_budget(lab: Lab) -> None:
    lab.track = lab.track.replace("trial_seconds = 60", "trial_seconds = 0.5")
    entry = lab.submit("Slow")
    assert entry.data_sets == {"digits": Status.TIMED_OUT}


def test_a_privilege_gives_past_data_and_is_never_ranked(lab: Lab) -> None:
    entry = lab.submit("Remembers")
    assert any("past_data" in reason for reason in entry.unranked_because)
    (trial, *_) = journal(lab).trials()
    assert [t.metrics["past"] for t in trial.tasks] == [0.0, 4.0, 7.0]


def test_given_hyperparameters_skip_tuning_and_are_never_ranked(lab: Lab, tmp_path: Path) -> None:
    point = tmp_path / "point.toml"
    point.write_text("stride = 4\n")  # outside the declared set, as the papers' presets may be
    entry = lab.submit("Good", hyperparameters=point)
    assert entry.is_complete
    assert "hyperparameters were given, not tuned" in entry.unranked_because
    assert {t.key.phase for t in journal(lab).trials()} == {"evaluation"}
    point.write_text("stride = 4\nspeed = 3\n")
    with pytest.raises(SpaceError, match="speed is not a hyperparameter"):
        lab.submit("Good", hyperparameters=point)


def test_a_failing_machine_is_retried_and_never_scored(lab: Lab) -> None:
    failures = iter([True, True])

    def on_step(step: Step) -> None:
        if step.kind == "answer" and step.name == "predict" and next(failures, False):
            raise InfrastructureError("The engine went away.")

    entry = lab.submit("Good", on_step)
    assert entry.is_complete
    retried = [e for e in lab.events if isinstance(e, Retried)]
    assert len(retried) == 2
    assert all(t.status is Status.OK for t in journal(lab).trials())
    assert export(lab.folder / "results", lab.folder / "a") == undisturbed(lab)


def test_a_machine_that_keeps_failing_stops_the_run_and_the_next_one_continues(lab: Lab) -> None:
    def on_step(step: Step) -> None:
        if step.kind == "start" and step.cell > 20:
            raise InfrastructureError("The engine went away.")

    with pytest.raises(InfrastructureError, match="went away"):
        lab.submit("Good", on_step)
    done = len(journal(lab).trials())
    assert 0 < done < 6
    assert lab.submit("Good").is_complete


def test_an_interrupt_finishes_the_task_and_the_same_command_continues_there(lab: Lab) -> None:
    def asked() -> bool:
        return sum(isinstance(e, TaskDone) for e in lab.events) >= 4

    with pytest.raises(Interrupted):
        lab.submit("Good", stop=Stop(asked))
    lab.events.clear()
    entry = lab.submit("Good")
    assert entry.is_complete
    started = [e for e in lab.events if isinstance(e, TrialStarted)]
    assert started[0].resumed_tasks == 1
    assert export(lab.folder / "results", lab.folder / "a") == undisturbed(lab)


def test_a_changed_track_starts_a_new_run_and_says_why(lab: Lab) -> None:
    lab.submit("Good")
    lab.events.clear()
    lab.track = lab.track.replace("draws = 2", "draws = 3")
    lab.submit("Good")
    (new,) = [e for e in lab.events if isinstance(e, NewRun)]
    assert "track_hash" in new.because
    assert len(run_directories(lab.folder / "results")) == 2


def test_both_phases_look_the_same_from_inside(lab: Lab) -> None:
    """All that is sent, byte for byte, but for data, seeds and hyperparameters."""
    seen: dict[str, list[str]] = {"tuning": [], "evaluation": []}
    phase = "tuning"

    class Spy(lab.learners["Good"]):  # type: ignore[misc,name-defined]
        def setup(self) -> None:
            params = self.context.setup.model_dump(mode="json")
            params.update(hyperparameters=None, learner_seed=None)
            seen[phase].append(json.dumps(params, sort_keys=True))

    def report(event: object) -> None:
        nonlocal phase
        if isinstance(event, PhaseStarted):
            phase = event.phase

    lab.learners = {**lab.learners, "Spy": Spy}
    lab.listen = report
    lab.submit("Spy")
    assert set(seen["tuning"]) == set(seen["evaluation"])
    assert len(set(seen["tuning"])) == 1


def test_states_are_dropped_unless_asked_for(lab: Lab) -> None:
    lab.submit("Good")
    assert not list((lab.folder / "results").rglob("*.safetensors"))
    lab.submit("Good", keep_states=True, submission="kept")
    trials = journal_of(lab, "kept").trials()
    assert all(journal_of(lab, "kept").state(t.id, i) for t in trials for i in range(3))


def journal_of(lab: Lab, submission: str) -> Journal:
    for folder in run_directories(lab.folder / "results"):
        info = Journal(folder).run()
        if info is not None and info.lock.submission == submission:
            return Journal(folder)
    raise AssertionError(submission)


def test_two_runs_may_not_share_a_journal(lab: Lab) -> None:
    def on_step(step: Step) -> None:
        if step.cell == 1 and step.kind == "start":
            other = Lab(lab.folder, lab.data, lab.learners)
            with pytest.raises(StoreError, match="locked"):
                other.submit("Good")

    assert lab.submit("Good", on_step).is_complete


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"track": "no-such-track"}, TrackError, "suite track list"),
        ({"device": "tpu"}, UsageError, "Choose auto, cpu or cuda"),
        ({"device": "cuda"}, UsageError, "No NVIDIA GPU"),
        ({"slots": 500}, UsageError, "--slots"),
    ],
)
def test_bad_requests_say_what_to_do(lab: Lab, change: dict[str, object], error: type[Exception], words: str) -> None:
    from dataclasses import replace

    from suite.evaluation.submit import submit_image
    from suite.sandbox import MemorySandbox

    request = replace(lab.request("Good"), **change)
    with pytest.raises(error, match=words):
        submit_image(request, lab.events.append, sandbox=MemorySandbox(lab.learners))


def test_counts_equal_an_oracle_that_predicts_outside_the_harness(lab: Lab) -> None:
    """Final counts recomputed from the data with plain numpy, for a learner without noise."""

    class Plain(lab.learners["Good"]):  # type: ignore[misc,name-defined]
        def learn(self, task: object) -> None:
            pixels = self._shrink(task.images)  # type: ignore[attr-defined]
            for c in task.classes:  # type: ignore[attr-defined]
                self.means[c] = pixels[task.labels == c].mean(axis=0)  # type: ignore[attr-defined]

    lab.learners = {**lab.learners, "Plain": Plain}
    entry = lab.submit("Plain")
    from suite.data import registry

    data = registry.load("digits", lab.data)
    assert entry.selection is not None
    assert entry.selection.hyperparameters is not None
    stride = entry.selection.hyperparameters["stride"]
    assert isinstance(stride, int)

    def pixels(images: np.ndarray) -> np.ndarray:
        return images[:, ::stride, ::stride].reshape(len(images), -1) / np.float32(255)

    means = np.stack([pixels(np.asarray(data.images("train", c))).mean(axis=0) for c in range(10)])
    right = 0
    for c in range(10):
        test = pixels(np.asarray(data.images("test", c)))
        right += int(sum(((p - means) ** 2).sum(axis=1).argmin() == c for p in test))
    for trial in journal(lab).trials():
        if trial.key.phase == "evaluation":
            assert sum(trial.tasks[-1].correct) == right


def test_the_end_of_every_trial_is_reported(lab: Lab) -> None:
    lab.submit("Good")
    assert sum(isinstance(e, TrialDone) for e in lab.events) == len(journal(lab).trials())
