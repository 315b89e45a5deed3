"""Runs jobs on the slots of this machine, one at a time in each."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from suite.execution.slots import Slot

J = TypeVar("J")
R = TypeVar("R")


def run_jobs(jobs: Sequence[J], slots: Sequence[Slot], work: Callable[[J, Slot], R]) -> Iterator[tuple[J, R]]:
    """Yield (job, result) as jobs end. With one slot, jobs run in order in this thread.

    The first exception stops the hand-out of further jobs; it is raised once the running ones have ended and their
    results were yielded.
    """
    if len(slots) == 1:
        for job in jobs:
            yield job, work(job, slots[0])
        return
    free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
    for slot in slots:
        free.put(slot)

    def place(job: J) -> R:
        slot = free.get()
        try:
            return work(job, slot)
        finally:
            free.put(slot)

    waiting = list(reversed(jobs))
    with ThreadPoolExecutor(len(slots)) as pool:
        running: dict[Future[R], J] = {}
        failure: BaseException | None = None
        while waiting or running:
            while waiting and len(running) < len(slots):
                job = waiting.pop()
                running[pool.submit(place, job)] = job
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                job, error = running.pop(future), future.exception()
                if error is None:
                    yield job, future.result()
                else:
                    failure = failure or error
                    waiting.clear()
    if failure is not None:
        raise failure
