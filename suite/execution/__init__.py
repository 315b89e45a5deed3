"""Where trials run: the slots of this machine."""

from __future__ import annotations

from suite.execution.local import run_jobs
from suite.execution.slots import Slot, plan_slots

__all__ = ["Slot", "plan_slots", "run_jobs"]
