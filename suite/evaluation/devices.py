"""Which device learners compute on. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from suite.errors import UsageError
from suite.protocol import Device


def choose_gpus(asked: str, found: Sequence[str]) -> tuple[Device, list[str]]:
    """The device and the GPUs to deal out, for `auto`, `cpu` or `cuda`. Raises UsageError."""
    if asked not in ("auto", "cpu", "cuda"):
        raise UsageError(f"There is no device {asked!r}.", "Choose auto, cpu or cuda.")
    if asked == "cuda" and not found:
        raise UsageError("No NVIDIA GPU was found.", "`suite doctor` says why; or use --device cpu.")
    if asked == "cpu" or not found:
        return "cpu", []
    return "cuda", list(found)
