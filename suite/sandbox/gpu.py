"""A GPU seen through NVML: memory of a cell's processes and energy of the board. Needs the `pynvml` module."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from suite.errors import InfrastructureError


class GpuGauge:
    """Samples one GPU, which a cell has to itself."""

    def __init__(self, nvml: Any, device: Any) -> None:
        self._nvml = nvml
        self._device = device
        self._start_bytes = self._used()
        self._start_millijoules = self._energy()
        self.peak_bytes: int | None = None
        """Highest memory of the cell's processes; of the whole GPU beyond what was used at the start, where NVML does
        not know them (processes of another namespace)."""

    @property
    def joules(self) -> float | None:
        """Energy of the whole board since the start; None where the board does not count it."""
        now = self._energy()
        if now is None or self._start_millijoules is None:
            return None
        return (now - self._start_millijoules) / 1000

    def sample(self, pids: AbstractSet[int]) -> None:
        """Look once more; `pids` are the cell's processes. A GPU that does not answer is left to `fault`."""
        own = [p.usedGpuMemory for p in self._processes() if p.pid in pids and p.usedGpuMemory is not None]
        try:
            used = sum(own) if own else max(0, self._used() - self._start_bytes)
        except InfrastructureError:
            return
        self.peak_bytes = max(self.peak_bytes or 0, used)

    def fault(self) -> InfrastructureError | None:
        """Why the GPU cannot be used at this moment; None if it can."""
        try:
            self._used()
        except InfrastructureError as error:
            return error
        return None

    def _used(self) -> int:
        try:
            return int(self._nvml.nvmlDeviceGetMemoryInfo(self._device).used)
        except self._nvml.NVMLError as error:
            raise InfrastructureError(f"The GPU does not answer: {error}.", "See `suite doctor`.") from error

    def _processes(self) -> list[Any]:
        try:
            return list(self._nvml.nvmlDeviceGetComputeRunningProcesses(self._device))
        except self._nvml.NVMLError:
            return []

    def _energy(self) -> int | None:
        try:
            return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._device))
        except self._nvml.NVMLError:
            return None


def gpu_gauge(uuid: str | None) -> GpuGauge | None:
    """The gauge of a GPU by its UUID; None without a GPU or without the `pynvml` module.

    Raises InfrastructureError when NVML knows no such GPU, or the driver does not answer.
    """
    if uuid is None:
        return None
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return GpuGauge(pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid))
    except pynvml.NVMLError as error:
        raise InfrastructureError(f"The GPU {uuid} cannot be used: {error}.", "See `suite doctor`.") from error
