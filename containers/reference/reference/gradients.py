"""One training step's gradients: eagerly, or replayed from a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, cast

import torch
from torch import Tensor

from reference.batches import Batch
from reference.optim import Parameters

Precision = Literal["float32", "bfloat16"]
_EAGER_STEPS = 3
"""Full batches that run eagerly before the capture, so that libraries have made their choices."""


class Gradients(Protocol):
    """Leaves d loss / d parameter in the parameters' `.grad` and returns the loss, detached."""

    def __call__(self, batch: Batch) -> Tensor: ...


class Eager:
    """Forward and backward as they are written. bfloat16 means autocast around the loss, on CUDA only."""

    def __init__(
        self, loss_of: Callable[[Batch], Tensor], parameters: Parameters, precision: Precision = "float32"
    ) -> None:
        self._loss_of = loss_of
        self._parameters = flatten(parameters)
        self._precision = precision

    def __call__(self, batch: Batch) -> Tensor:
        for parameter in self._parameters:
            parameter.grad = None
        return self._backward(batch)

    def _backward(self, batch: Batch) -> Tensor:
        cast_down = self._precision == "bfloat16" and batch.images.is_cuda
        with torch.autocast(batch.images.device.type, torch.bfloat16, enabled=cast_down, cache_enabled=False):
            loss = self._loss_of(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()


class Graphed(Eager):
    """The same, with batches of the full size replayed from one CUDA graph: for networks bound by kernel launches.

    The first full batches run eagerly, the next is captured; batches of another size always run eagerly. The loss must
    not wait for the device (no `.item()`, no boolean indexing, no new tensors from Python numbers).
    """

    def __init__(
        self,
        loss_of: Callable[[Batch], Tensor],
        parameters: Parameters,
        precision: Precision = "float32",
        *,
        batch_size: int,
    ) -> None:
        super().__init__(loss_of, parameters, precision)
        self._batch_size = batch_size
        self._left = _EAGER_STEPS
        self._graph: torch.cuda.CUDAGraph | None = None
        self._input: Batch | None = None
        self._loss: Tensor | None = None
        self._gradients: list[Tensor | None] = []

    def __call__(self, batch: Batch) -> Tensor:
        if len(batch.labels) != self._batch_size:
            return super().__call__(batch)
        if self._left:
            self._left -= 1
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # capture wants what it captures to have run beside the default stream
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                loss = super().__call__(batch)
            torch.cuda.current_stream().wait_stream(side)
            return loss
        if self._graph is None:
            self._capture(batch)
        for mine, given in zip(cast("Batch", self._input), batch, strict=True):
            mine.copy_(given)
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient
        cast("torch.cuda.CUDAGraph", self._graph).replay()
        return cast("Tensor", self._loss).clone()

    def _capture(self, batch: Batch) -> None:
        self._input = Batch(*(part.clone() for part in batch))
        for parameter in self._parameters:
            parameter.grad = None
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._loss = self._backward(self._input)
        self._gradients = [parameter.grad for parameter in self._parameters]


def flatten(parameters: Parameters) -> list[Tensor]:
    """The parameters of all groups."""
    found: list[Tensor] = []
    for entry in parameters:
        found += list(entry["params"]) if isinstance(entry, dict) else [entry]
    return found
