"""Slots of this machine: which CPUs and which GPU one trial has to itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suite.errors import UsageError


@dataclass(frozen=True)
class Slot:
    """A place for one trial at a time."""

    index: int
    cpus: tuple[int, ...]
    spare_cpus: tuple[int, ...]
    """CPUs on which the next cell may warm up without touching those of a timed phase; empty: none are free."""
    gpu: str | None
    is_exclusive: bool
    """Whether no other trial runs on the machine, so that its times are comparable."""


def plan_slots(count: int, cpus_per_slot: int, cpus: Sequence[int], gpus: Sequence[str]) -> list[Slot]:
    """`count` slots of disjoint CPUs, and of one GPU each where there are GPUs.

    CPUs that no slot takes are dealt out as spare CPUs. Raises UsageError when the machine is too small.
    """
    if count < 1 or cpus_per_slot < 1:
        raise UsageError(f"{count} slot(s) of {cpus_per_slot} CPU(s) run nothing.", "Ask for at least one of each.")
    if count * cpus_per_slot > len(cpus):
        raise UsageError(
            f"{count} slot(s) of {cpus_per_slot} CPU(s) do not fit on {len(cpus)} CPU(s).",
            "Ask for fewer with --slots, or use a larger machine.",
        )
    if gpus and count > len(gpus):
        raise UsageError(f"{count} slots share {len(gpus)} GPU(s).", "Ask for one slot per GPU with --slots.")
    taken = count * cpus_per_slot
    free = list(cpus[taken:])
    return [
        Slot(
            index=i,
            cpus=tuple(cpus[i * cpus_per_slot : (i + 1) * cpus_per_slot]),
            spare_cpus=tuple(free[i::count]),
            gpu=gpus[i] if gpus else None,
            is_exclusive=count == 1,
        )
        for i in range(count)
    ]
