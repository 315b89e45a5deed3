"""From the trials of one run to the figures of its entry: means over seeds, draws, differences (DESIGN 7). Pure.

A set with a failed or missing seed has no mean: its seeds are shown instead. Accuracies are fractions, unrounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from suite.metrics import AccuracyCounts, Summary, acc, avg_acc, final_acc, harmonic_mean, summarise
from suite.protocol import Point
from suite.seeds import canonical_json
from suite.status import Status
from suite.store.records import Entry, Phase, RunInfo, Selection, TaskRecord, TrialRecord
from suite.store.results import StoredRun
from suite.store.rows import counts_of
from suite.store.track_view import TrackView, track_view

_SET_FAILED = "an evaluation set failed"


@dataclass(frozen=True)
class TaskSummary:
    """One task over the seeds of a set: Acc_t, and means of what was stored and spent."""

    task: int
    acc: Summary
    stored_parameters: float
    trainable_parameters: float
    state_bytes: float
    exemplars: float
    memory_b4_bytes: float
    train_seconds: float
    post_seconds: float
    predict_seconds: float
    cpu_seconds: float | None
    peak_memory_bytes: int | None
    peak_gpu_bytes: int | None
    energy_joules: float | None


@dataclass(frozen=True)
class SetSummary:
    """All seeds of one phase on one data set with one choice of hyperparameters."""

    phase: Phase
    data_set: str
    seeds: Sequence[TrialRecord]
    """In the order of their index; those that ended."""
    expected_seeds: int

    @property
    def failed(self) -> list[TrialRecord]:
        """Seeds for whose failure the learner is answerable."""
        return [t for t in self.seeds if t.status.counts_as_failure]

    @property
    def status(self) -> Status:
        """Ok; the kind of the first failed seed; or interrupted while seeds are missing."""
        if self.failed:
            return self.failed[0].status
        return Status.OK if len(self.seeds) == self.expected_seeds else Status.INTERRUPTED

    @cached_property
    def counts(self) -> list[AccuracyCounts]:
        """Accuracy counts of the seeds that ended well."""
        made = (counts_of(t.tasks) for t in self.seeds if t.status is Status.OK)
        return [c for c in made if c is not None]

    @property
    def acc(self) -> Summary | None:
        """Acc over the seeds; None unless all ended well."""
        return self._over_seeds(final_acc)

    @property
    def avg_acc(self) -> Summary | None:
        """AvgAcc over the seeds; None unless all ended well."""
        return self._over_seeds(avg_acc)

    @property
    def score(self) -> float | None:
        """Harmonic mean of seed-mean Acc and seed-mean AvgAcc: what tuning selects by, used to rank both phases."""
        if self.acc is None or self.avg_acc is None:
            return None
        return harmonic_mean(self.acc.mean, self.avg_acc.mean)

    def _over_seeds(self, measure: Callable[[AccuracyCounts], float]) -> Summary | None:
        return summarise([measure(c) for c in self.counts]) if self.status is Status.OK else None

    @property
    def is_exclusive(self) -> bool:
        """Whether its times may be ranked: nothing else of the suite used the machine meanwhile."""
        return bool(self.seeds) and all(t.is_exclusive for t in self.seeds)

    @property
    def learn_seconds(self) -> Summary | None:
        """Training and post-training time of a whole trial, over the seeds; None unless all ended well."""
        if self.status is not Status.OK:
            return None
        return summarise(
            [sum(t.resources.train_seconds + t.resources.post_seconds for t in trial.tasks) for trial in self.seeds]
        )

    @cached_property
    def tasks(self) -> list[TaskSummary]:
        """Per task, over the seeds that ended well; empty if none did."""
        done = [t for t in self.seeds if t.status is Status.OK and t.tasks]
        if not done:
            return []
        curves = [acc(c) for c in self.counts]
        length = min(len(t.tasks) for t in done)
        return [_task_summary(i, [float(c[i]) for c in curves], [t.tasks[i] for t in done]) for i in range(length)]


def _task_summary(task: int, accuracies: Sequence[float], records: Sequence[TaskRecord]) -> TaskSummary:
    resources = [r.resources for r in records]
    return TaskSummary(
        task=task,
        acc=summarise(accuracies),
        stored_parameters=_mean(r.stored_parameters for r in records),
        trainable_parameters=_mean(r.trainable_parameters for r in records),
        state_bytes=_mean(r.state_bytes for r in records),
        exemplars=_mean(r.exemplars for r in records),
        memory_b4_bytes=_mean(r.memory_b4_bytes for r in records),
        train_seconds=_mean(r.train_seconds for r in resources),
        post_seconds=_mean(r.post_seconds for r in resources),
        predict_seconds=_mean(r.predict_seconds for r in resources),
        cpu_seconds=_mean_known(r.cpu_seconds for r in resources),
        peak_memory_bytes=_max_known(r.peak_memory_bytes for r in resources),
        peak_gpu_bytes=_max_known(r.peak_gpu_bytes for r in resources),
        energy_joules=_mean_known(r.energy_joules for r in resources),
    )


@dataclass(frozen=True)
class DrawSummary:
    """One tuning draw."""

    draw: int
    hyperparameters: Point
    result: SetSummary


@dataclass(frozen=True)
class EntrySummary:
    """One run as an entry: what it chose, and what came of it."""

    run: str
    info: RunInfo
    track: TrackView
    entry: Entry | None
    selection: Selection | None
    draws: Sequence[DrawSummary]
    """By number; a draw that repeats an earlier one's values shares its trials and is not listed again."""
    tuning: SetSummary | None
    """The selected draw on the tuning set; None if nothing was tuned."""
    evaluation: Sequence[SetSummary]
    """In the track's order."""
    attempts: int
    """Tries that the machine or the user cut short."""

    @property
    def status(self) -> Status:
        """Ok; why it failed; or interrupted while trials are missing."""
        if self.selection is not None and self.selection.failure is not None:
            return self.selection.failure
        return next((s.status for s in self.evaluation if s.status is not Status.OK), Status.OK)

    @property
    def unranked_because(self) -> list[str]:
        """Why it has no place; empty if it has one. The conditions are checked again, whatever the entry says."""
        reasons = list(self.entry.unranked_because) if self.entry else []
        is_untuned = self.selection is not None and self.selection.failure is not None
        if is_untuned:  # then no evaluation set was tried at all
            reasons = [reason for reason in reasons if reason != _SET_FAILED]
        checks = dict.fromkeys(self.info.lock.unranked_because, True) | {
            "it is not complete": self.entry is None or self.status is Status.INTERRUPTED,
            "no tuning draw was eligible": is_untuned,
            _SET_FAILED: self.status.counts_as_failure and not is_untuned,
        }
        reasons += [reason for reason, holds in checks.items() if holds and reason not in reasons]
        if not reasons and self.entry is not None and not self.entry.is_ranked:
            reasons.append("the entry was recorded as not ranked")
        return reasons

    @property
    def score(self) -> float | None:
        """Mean over the evaluation sets of each one's score; None unless all ended well."""
        scores = [s.score for s in self.evaluation]
        return _mean(s for s in scores if s is not None) if scores and None not in scores else None

    @property
    def learn_seconds(self) -> float | None:
        """Mean over the evaluation sets of the seed-mean training and post-training time of a trial."""
        times = [s.learn_seconds for s in self.evaluation]
        return _mean(t.mean for t in times if t is not None) if times and None not in times else None

    @property
    def is_exclusive(self) -> bool:
        """Whether its times may be ranked."""
        return all(s.is_exclusive for s in self.evaluation)


def summarise_run(run: StoredRun) -> EntrySummary:
    """The entry that a run amounts to so far. Raises StoreError if its track snapshot is unreadable."""
    track = track_view(run.info.lock.track_snapshot)
    draws = _draws(run.trials, track)
    selected = next((d for d in draws if run.selection and d.draw == run.selection.draw), None)
    return EntrySummary(
        run=run.id,
        info=run.info,
        track=track,
        entry=run.entry,
        selection=run.selection,
        draws=draws,
        tuning=_selected(draws, run.selection) if selected is None else selected.result,
        evaluation=[_set_summary("evaluation", part.data_set, run.trials, track.seeds) for part in track.evaluation],
        attempts=len(run.attempts),
    )


def _draws(trials: Sequence[TrialRecord], track: TrackView) -> list[DrawSummary]:
    by_draw: dict[int, list[TrialRecord]] = {}
    for trial in trials:
        if trial.key.phase == "tuning" and trial.draw is not None:
            by_draw.setdefault(trial.draw, []).append(trial)
    return [
        DrawSummary(
            draw=draw,
            hyperparameters=members[0].key.hyperparameters,
            result=_set_summary("tuning", track.tuning.data_set, members, track.seeds),
        )
        for draw, members in sorted(by_draw.items())
    ]


def _selected(draws: Sequence[DrawSummary], selection: Selection | None) -> SetSummary | None:
    """A draw that repeats an earlier one's values has its trials under the earlier number."""
    if selection is None or selection.hyperparameters is None:
        return None
    wanted = canonical_json(selection.hyperparameters)
    return next((d.result for d in draws if canonical_json(d.hyperparameters) == wanted), None)


def _set_summary(phase: Phase, data_set: str, trials: Iterable[TrialRecord], seeds: int) -> SetSummary:
    members = [t for t in trials if t.key.phase == phase and t.key.data_set == data_set]
    return SetSummary(phase, data_set, sorted(members, key=lambda t: t.key.seed_index), seeds)


def difference(tuning: Summary | None, evaluation: Summary | None) -> float | None:
    """Tuning minus evaluation, of the means; positive where a method did better while it was tuned.

    Data sets differ in difficulty, so a difference alone says nothing about overestimation: compare it between methods.
    """
    return tuning.mean - evaluation.mean if tuning and evaluation else None


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _mean_known(values: Iterable[float | None]) -> float | None:
    listed = list(values)
    known = [v for v in listed if v is not None]
    return _mean(known) if known and len(known) == len(listed) else None


def _max_known(values: Iterable[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return max(known) if known else None
