"""Slots share nothing; jobs run in order, one at a time in each slot, and a failure loses no other result."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.errors import UsageError
from suite.execution import Slot, plan_slots, run_jobs


def slots(count: int) -> list[Slot]:
    return plan_slots(count, 1, range(count), [])


# --- slots ----------------------------------------------------------------------------------------------------------


@given(
    count=st.integers(1, 6),
    cpus_per_slot=st.integers(1, 4),
    cpus=st.sets(st.integers(0, 200), max_size=30),
    gpus=st.integers(0, 6),
)
def test_slots_share_no_cpu_and_no_gpu(count: int, cpus_per_slot: int, cpus: set[int], gpus: int) -> None:
    names = [f"GPU-{i}" for i in range(gpus)]
    try:
        planned = plan_slots(count, cpus_per_slot, sorted(cpus), names)
    except UsageError:
        assert count * cpus_per_slot > len(cpus) or 0 < gpus < count
        return
    assert [s.index for s in planned] == list(range(count))
    assert all(len(s.cpus) == cpus_per_slot for s in planned)
    dealt = [cpu for s in planned for cpu in (*s.cpus, *s.spare_cpus)]
    assert sorted(dealt) == sorted(cpus)
    assert [s.gpu for s in planned] == (names[:count] if gpus else [None] * count)
    assert all(s.is_exclusive == (count == 1) for s in planned)


@pytest.mark.parametrize(("count", "cpus_per_slot"), [(0, 1), (-1, 1), (1, 0), (3, 1), (1, 3)])
def test_what_does_not_fit_is_refused_with_a_remedy(count: int, cpus_per_slot: int) -> None:
    with pytest.raises(UsageError) as caught:
        plan_slots(count, cpus_per_slot, [0, 1], [])
    assert caught.value.remedy


def test_two_slots_do_not_share_a_gpu() -> None:
    with pytest.raises(UsageError, match="GPU"):
        plan_slots(2, 1, [0, 1], ["GPU-0"])


# --- jobs -----------------------------------------------------------------------------------------------------------


def test_one_slot_runs_in_order_in_this_thread_and_only_on_demand() -> None:
    started: list[int] = []

    def work(job: int, slot: Slot) -> int:
        assert threading.current_thread() is threading.main_thread()
        started.append(job)
        return job * 10

    results = run_jobs([3, 1, 2], slots(1), work)
    assert started == []
    assert next(results) == (3, 30)
    assert started == [3]
    assert list(results) == [(1, 10), (2, 20)]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_every_job_runs_once(count: int) -> None:
    jobs = list(range(20))
    assert sorted(run_jobs(jobs, slots(count), lambda job, _: job + 1)) == [(j, j + 1) for j in jobs]


@pytest.mark.parametrize("count", [1, 3])
def test_no_jobs_give_no_results(count: int) -> None:
    assert list(run_jobs(empty(), slots(count), lambda job, _: job)) == []


def empty() -> Sequence[int]:
    return []


def test_jobs_are_handed_out_in_order_to_slots_that_are_free() -> None:
    lock, started = threading.Lock(), list[int]()
    busy: dict[int, int] = {}
    most = 0

    def work(job: int, slot: Slot) -> None:
        nonlocal most
        with lock:
            assert slot.index not in busy, "two jobs in one slot"
            busy[slot.index] = job
            most = max(most, len(busy))
            started.append(job)
        time.sleep(0.002)
        with lock:
            del busy[slot.index]

    list(run_jobs(list(range(30)), slots(3), work))
    assert most == 3
    assert all(abs(position - job) < 3 for position, job in enumerate(started))


def test_slots_work_at_the_same_time() -> None:
    barrier = threading.Barrier(3, timeout=10)
    assert len(list(run_jobs([0, 1, 2], slots(3), lambda job, _: barrier.wait()))) == 3


def test_a_failure_in_one_slot_ends_the_rest() -> None:
    done: list[int] = []

    def work(job: int, slot: Slot) -> int:
        if job == 1:
            raise RuntimeError("job 1")
        done.append(job)
        return job

    results = run_jobs([0, 1, 2], slots(1), work)
    assert next(results) == (0, 0)
    with pytest.raises(RuntimeError, match="job 1"):
        next(results)
    assert done == [0]


def test_a_failure_waits_for_what_runs_yields_it_and_starts_nothing_new() -> None:
    failed, started = threading.Event(), list[int]()

    def work(job: int, slot: Slot) -> int:
        started.append(job)
        if job == 0:
            failed.set()
            raise RuntimeError("job 0")
        failed.wait(10)
        time.sleep(0.05)
        return job

    found: list[tuple[int, int]] = []
    with pytest.raises(RuntimeError, match="job 0"):
        found.extend(run_jobs(list(range(9)), slots(3), work))
    # extend() takes results as they come, so those of the running jobs are in before the failure is raised
    assert sorted(started) == [0, 1, 2]
    assert sorted(found) == [(1, 1), (2, 2)]


def test_the_first_of_two_failures_is_raised() -> None:
    first = threading.Event()

    def work(job: int, slot: Slot) -> int:
        if job == 0:
            first.set()
            raise RuntimeError("first")
        first.wait(10)
        time.sleep(0.05)
        raise RuntimeError("second")

    with pytest.raises(RuntimeError, match="first"):
        list(run_jobs([0, 1], slots(2), work))


def test_a_reader_that_stops_early_waits_for_what_runs() -> None:
    running = threading.Semaphore(0)

    def work(job: int, slot: Slot) -> int:
        time.sleep(0.01)
        running.release()
        return job

    results = run_jobs(list(range(50)), slots(2), work)
    next(results)
    results.close()  # type: ignore[attr-defined]
    finished = running._value
    time.sleep(0.05)
    assert running._value == finished < 50
