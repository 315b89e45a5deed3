"""What is known of a running submission, put together from its events. Pure: it is told the time."""

from __future__ import annotations

from suite.evaluation.events import (
    Epoch,
    Event,
    MergeDelayed,
    NewRun,
    PhaseStarted,
    Prepared,
    Retried,
    Selected,
    TaskDone,
    TrialDone,
    TrialStarted,
)
from suite.evaluation.selection import counts_of
from suite.metrics import avg_acc, final_acc
from suite.status import Status
from suite.store.records import TrialRecord


def event_line(event: Event) -> str:
    """One plain line for an event; '' for those that only move a bar."""
    match event:
        case NewRun():
            return f"run {event.run}" + (f": {event.because}" if event.because else "")
        case Prepared():
            return f"data set {event.data_set} prepared"
        case PhaseStarted():
            done = f", {event.done} of them done before" if event.done else ""
            return f"{event.phase}: {event.trials} trials{done}"
        case TrialStarted():
            resumed = f", resumed after task {event.resumed_tasks}" if event.resumed_tasks else ""
            return f"{event.spec.title}: {event.tasks} tasks{resumed}"
        case Epoch():
            return ""
        case TaskDone():
            record = event.record
            share = sum(record.correct) / sum(record.total)
            seconds = record.resources.train_seconds + record.resources.post_seconds
            return f"{event.spec.title}: task {record.task + 1} learned in {seconds:.1f} s, Acc {share:.2%}"
        case TrialDone():
            return trial_line(event.record)
        case Retried():
            return f"{event.spec.title}: the machine failed ({event.attempt.message}); trying again"
        case MergeDelayed():
            return f"database not updated yet ({event.message})"
        case Selected():
            return _selected_line(event)


def trial_line(record: TrialRecord) -> str:
    """How a trial ended."""
    name = f"{record.key.phase} {record.key.data_set} seed {record.key.seed_index + 1}"
    if record.status is not Status.OK:
        return f"{name}: {record.status.look.text}: {record.message}"
    counts = counts_of(record.tasks)
    return f"{name}: Acc {final_acc(counts):.2%}, AvgAcc {avg_acc(counts):.2%}"


def _selected_line(event: Selected) -> str:
    chosen = event.selection
    if chosen.failure is not None:
        return f"selection: no draw is eligible ({chosen.failure.look.text}); the entry reads failed"
    if chosen.draw is None:
        return "selection: hyperparameters were given"
    return f"selection: draw {chosen.draw + 1} of {chosen.draws}, score {chosen.score:.4f}, {chosen.hyperparameters}"


class Progress:
    """Counts trials and tasks, keeps the best draw so far, estimates the time left."""

    def __init__(self) -> None:
        self.total = 0
        self.completed = 0.0
        self._phase = self._trial = self._epoch = ""
        self._tasks = 0
        self._task = 0
        self._best: float | None = None
        self._first: tuple[float, float] | None = None

    def see(self, event: Event, now: float) -> None:
        """Take an event in."""
        match event:
            case PhaseStarted():
                self._phase, self.total, self.completed = event.phase, event.trials, float(event.done)
                self._first = (now, self.completed)
                self._best = None
            case TrialStarted():
                self._trial, self._tasks, self._task = event.spec.title, event.tasks, event.resumed_tasks
                self._epoch = ""
            case Epoch():
                self._task = event.task
                self._epoch = f"{event.epoch} of {event.epochs}" if event.epoch and event.epochs else event.note
            case TaskDone():
                self._task, self._epoch = event.record.task + 1, ""
                self.completed += 1 / max(self._tasks, 1)
            case TrialDone():
                self.completed = float(round(self.completed))
                if event.record.status is Status.OK:
                    self._best = max(self._best or 0.0, final_acc(counts_of(event.record.tasks)))
            case NewRun() | Prepared() | Retried() | MergeDelayed() | Selected():
                return

    def facts(self) -> list[tuple[str, str]]:
        """Labels and values for the display."""
        rows = [
            ("phase", self._phase),
            ("trial", f"{self._trial} ({int(self.completed)} of {self.total} done)"),
            ("task", f"{min(self._task + 1, self._tasks)} of {self._tasks}"),
        ]
        if self._epoch:
            rows.append(("epoch", self._epoch))
        if self._best is not None:
            rows.append(("best Acc so far", f"{self._best:.2%}"))
        return rows

    def seconds_left(self, now: float) -> float | None:
        """Estimate for this phase, from its own pace; None before anything is done."""
        if self._first is None or self.completed <= self._first[1]:
            return None
        pace = (now - self._first[0]) / (self.completed - self._first[1])
        return max(self.total - self.completed, 0.0) * pace
