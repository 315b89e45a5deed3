"""Spares: one cell ahead, never in the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from suite.errors import InfrastructureError, LearnerError
from suite.protocol import Manifest
from suite.sandbox import Launch, MemorySandbox, Spares, Step, warm_up
from suite.status import Status
from tests.sandbox.learners.acts import Acts
from tests.sandbox.support import LIMITS, learn, setup

LAUNCH = Launch("acts", LIMITS, cpuset=(0,))
CPUS = (1,)


class Bench:
    """A sandbox whose steps are recorded and may be told to fail."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.threads: list[str] = []
        self.fault: Callable[[Step], None] = lambda _step: None
        self.sandbox = MemorySandbox({"acts": Acts}, self._on_step)
        self.spares = Spares(self.sandbox, Acts.manifest(), CPUS)

    def _on_step(self, step: Step) -> None:
        self.steps.append(step)
        self.threads.append(threading.current_thread().name)
        self.fault(step)

    @property
    def started(self) -> int:
        return sum(step.kind == "start" for step in self.steps)

    def wait(self) -> None:
        """Until the spare is paused."""
        deadline = time.monotonic() + 5
        while not any(step.kind == "pause" for step in self.steps) and time.monotonic() < deadline:
            time.sleep(0.005)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.spares.close()
    assert bench.sandbox.live == 0


def test_without_preparation_a_cell_starts_cold_set_up_and_paused(bench: Bench) -> None:
    cell, seconds = bench.spares.take(LAUNCH, setup())
    assert seconds > 0
    assert [(step.kind, step.name) for step in bench.steps if step.kind != "answer"] == [
        ("start", ""),
        ("call", "describe"),
        ("call", "setup"),
        ("pause", ""),
    ]
    learn(cell)
    cell.close()


def test_a_spare_is_made_elsewhere_and_handed_out_once(bench: Bench) -> None:
    bench.spares.prepare(LAUNCH, setup())
    cell, seconds = bench.spares.take(LAUNCH, setup())
    assert bench.started == 1
    assert set(bench.threads) == {"suite-spare"}
    assert seconds > 0
    learn(cell)
    other, _ = bench.spares.take(LAUNCH, setup())
    assert bench.started == 2
    cell.close()
    other.close()


def test_a_spare_warms_up_on_the_idle_cpus(bench: Bench) -> None:
    bench.spares.prepare(LAUNCH, setup())
    cell, _ = bench.spares.take(replace(LAUNCH, cpuset=(7,)), setup())
    assert cell.launch.cpuset == CPUS  # type: ignore[attr-defined]
    cell.close()


@pytest.mark.parametrize(
    ("launch", "parameters"),
    [
        (replace(LAUNCH, labels={"run": "other"}), setup()),
        (replace(LAUNCH, limits=replace(LIMITS, pids=65)), setup()),
        (LAUNCH, setup("learn:raise")),
    ],
)
def test_a_spare_that_does_not_fit_is_discarded(bench: Bench, launch: Launch, parameters: object) -> None:
    bench.spares.prepare(LAUNCH, setup())
    cell, _ = bench.spares.take(launch, parameters)  # type: ignore[arg-type]
    assert bench.started == 2
    assert bench.sandbox.live == 1
    cell.close()


def test_preparing_twice_makes_one_spare(bench: Bench) -> None:
    bench.spares.prepare(LAUNCH, setup())
    bench.spares.prepare(LAUNCH, setup())
    bench.wait()
    assert bench.started == 1


def test_preparing_another_replaces_the_spare(bench: Bench) -> None:
    bench.spares.prepare(LAUNCH, setup())
    bench.spares.prepare(LAUNCH, setup("learn:raise"))
    cell, _ = bench.spares.take(LAUNCH, setup("learn:raise"))
    assert bench.started == 2
    assert bench.sandbox.live == 1
    cell.close()


@pytest.mark.parametrize(
    ("cpus", "launch"), [((), LAUNCH), (CPUS, replace(LAUNCH, gpu="GPU-1"))], ids=["no idle CPU", "a GPU"]
)
def test_nothing_warms_up_where_it_would_disturb(cpus: tuple[int, ...], launch: Launch) -> None:
    bench = Bench()
    spares = Spares(bench.sandbox, Acts.manifest(), cpus)
    spares.prepare(launch, setup())
    time.sleep(0.05)
    assert bench.steps == []


def test_closing_discards_the_spare(bench: Bench) -> None:
    bench.spares.prepare(LAUNCH, setup())
    bench.spares.close()
    bench.spares.close()
    assert bench.sandbox.live == 0


@pytest.mark.parametrize("kind", ["start", "call", "pause"])
@pytest.mark.parametrize("error", [InfrastructureError("gone"), LearnerError(Status.TIMED_OUT, "slow")])
def test_a_spare_that_fails_is_made_again_cold(bench: Bench, kind: str, error: Exception) -> None:
    def strike(step: Step) -> None:
        if step.cell == 1 and step.kind == kind:
            raise error

    bench.fault = strike
    bench.spares.prepare(LAUNCH, setup())
    cell, _ = bench.spares.take(LAUNCH, setup())
    learn(cell)
    assert bench.sandbox.live == 1
    cell.close()


def test_a_cold_failure_is_raised_and_leaves_nothing(bench: Bench) -> None:
    with pytest.raises(LearnerError, match="boom") as caught:
        bench.spares.take(LAUNCH, setup("setup:raise"))
    assert "boom" in caught.value.log_tail
    assert bench.sandbox.live == 0


def test_a_learner_that_describes_itself_otherwise_is_refused(bench: Bench) -> None:
    other = Acts.manifest().model_copy(update={"version": "2"})
    with pytest.raises(LearnerError, match="manifest") as caught:
        warm_up(bench.sandbox, LAUNCH, other, setup())
    assert caught.value.status is Status.PROTOCOL_ERROR
    assert bench.sandbox.live == 0


def test_set_up_has_one_limit_of_time(bench: Bench) -> None:
    def slow(step: Step) -> None:
        if step.name == "describe":
            time.sleep(0.2)

    bench.fault = slow
    with pytest.raises(LearnerError) as caught:
        bench.spares.take(replace(LAUNCH, limits=replace(LIMITS, setup_seconds=0.1)), setup())
    assert caught.value.status is Status.TIMED_OUT
    assert isinstance(Acts.manifest(), Manifest)
