"""A base class for PyTorch learners: it gives `state_dict` and `load_state_dict`, and counts parameters."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from torch import nn

from suite.protocol.messages import LearnResult
from suite.sdk.learner import Context, Learner


@runtime_checkable
class Carried(Protocol):
    """Anything with PyTorch's state_dict habit: modules, exemplar memories, statistics."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any], /) -> Any: ...


class TorchLearner(Learner):
    """A learner around `self.network`, which `grow(seen)` makes or enlarges to score `seen` classes.

    Carried from task to task: the class counts, the network, and the attributes named in `carried` (plain state values,
    or objects with `state_dict` / `load_state_dict`). Everything else is gone.
    """

    carried: ClassVar[tuple[str, ...]] = ()
    network: nn.Module

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        torch.set_num_threads(context.setup.threads)
        torch.use_deterministic_algorithms(True, warn_only=True)
        # a debugging aid that comes with deterministic algorithms and costs a pass over every new buffer
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        self.device = torch.device(context.setup.device)
        self.seen = 0
        self.steps: list[int] = []

    @abstractmethod
    def grow(self, seen: int) -> None:
        """Make `self.network` (and what belongs to it) fit `seen` classes, from `self.seen` classes now.

        Called at the start of a task through `enlarge` and, with each earlier class count in turn, before a state is
        loaded; so it must depend on nothing but the class counts and the context, and make a new network, whatever
        there was before, when `self.seen` is 0.
        """

    def enlarge(self, classes: list[int]) -> int:
        """Grow for a task's classes; returns the number of classes before."""
        before, after = self.seen, max(self.seen, max(classes) + 1)
        if after > before:
            self.grow(after)
            self.steps = [*self.steps, after]
        self.seen = after
        return before

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"steps": list(self.steps), "network": self.network.state_dict()}
        for name in self.carried:
            value = getattr(self, name)
            state[name] = value.state_dict() if isinstance(value, Carried) else value
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen = 0
        for after in state["steps"]:
            self.grow(after)
            self.seen = after
        self.steps = list(state["steps"])
        self.network.load_state_dict(state["network"])
        for name in self.carried:
            value = getattr(self, name, None)
            if isinstance(value, Carried) and state[name] is not None:
                value.load_state_dict(state[name])
            else:
                setattr(self, name, state[name])

    def report(self) -> LearnResult:
        """Counts the network and every module in `carried`: a frozen copy that is kept is stored, too."""
        modules = [self.network, *(m for name in self.carried if isinstance(m := getattr(self, name), nn.Module))]
        parameters = [p for module in modules for p in module.parameters()]
        return LearnResult(
            stored_parameters=sum(p.numel() for p in parameters),
            trainable_parameters=sum(p.numel() for p in parameters if p.requires_grad),
        )
