"""Spare cells: the next learner starts, imports and sets up while the harness is busy with this one (DESIGN 4)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from suite.errors import SuiteError
from suite.protocol import Manifest, SetupParams
from suite.sandbox.interface import Cell, Launch, Sandbox
from suite.sandbox.warmup import warm_up


@dataclass
class _Spare:
    """A cell in the making, for one launch and one set-up."""

    launch: Launch
    setup: SetupParams
    thread: threading.Thread | None = None
    cell: Cell | None = None
    seconds: float = 0.0

    def fits(self, launch: Launch, setup: SetupParams) -> bool:
        return self.launch == replace(launch, cpuset=None) and self.setup == setup


class Spares:
    """At most one spare for one slot. `prepare` and `take` belong to the slot's own thread."""

    def __init__(self, sandbox: Sandbox, manifest: Manifest, cpus: tuple[int, ...] = ()) -> None:
        """`cpus`: where spares warm up; they must belong to no timed phase. Without any, every cell starts cold."""
        self._sandbox = sandbox
        self._manifest = manifest
        self._cpus = cpus
        self._spare: _Spare | None = None

    def prepare(self, launch: Launch, setup: SetupParams) -> None:
        """Begin to make a spare in the background, on CPUs of its own; never on a GPU, where a timed phase may run."""
        if not self._cpus or launch.gpu is not None:
            return
        if self._spare is not None:
            if self._spare.fits(launch, setup):
                return
            self._discard()
        spare = _Spare(replace(launch, cpuset=None), setup)
        spare.thread = threading.Thread(target=self._make, args=(spare,), name="suite-spare", daemon=True)
        self._spare = spare
        spare.thread.start()

    def take(self, launch: Launch, setup: SetupParams) -> tuple[Cell, float]:
        """A cell that is set up and paused, and the seconds its set-up took: the spare if it fits, else a cold one.

        The caller delivers, then `resume(launch.cpuset)`, then calls. Raises what `warm_up` raises.
        """
        spare, self._spare = self._spare, None
        if spare is not None:
            _finish(spare)
            if spare.cell is not None and spare.fits(launch, setup):
                return spare.cell, spare.seconds
            _close(spare)
        return warm_up(self._sandbox, launch, self._manifest, setup)

    def close(self) -> None:
        """Discard the spare."""
        self._discard()

    def _discard(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            _finish(spare)
            _close(spare)

    def _make(self, spare: _Spare) -> None:
        # What goes wrong here is not held against the learner: `take` starts a cold cell under the timed conditions.
        try:
            launch = replace(spare.launch, cpuset=self._cpus)
            spare.cell, spare.seconds = warm_up(self._sandbox, launch, self._manifest, spare.setup)
        except SuiteError:
            spare.cell = None


def _finish(spare: _Spare) -> None:
    if spare.thread is not None:
        spare.thread.join()


def _close(spare: _Spare) -> None:
    if spare.cell is not None:
        spare.cell.close()
