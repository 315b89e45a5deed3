"""What all learners on a pretrained backbone share: set-up, tasks seen so far, features in batches, their state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from reference.engine import Batch, Hooks, Pool, Source, fit
from reference.optim import Parameters
from reference.schedules import Recipe
from reference.vit import Backbone, load_backbone
from suite.protocol.messages import LearnResult
from suite.sdk import Context, Space, Task
from suite.sdk.torch import TorchLearner

EVALUATION_BATCH = 128
"""Images in one forward without gradients. It bounds memory and changes no result beyond rounding."""


class Growing(nn.Module):
    """A part of a network whose size follows the number of classes."""

    def grow(self, classes: int) -> None:
        """Fit `classes` classes; what is there of earlier ones stays as it is."""
        raise NotImplementedError


class PretrainedLearner(TorchLearner):
    """A learner around `self.backbone`, which is mounted and never part of the state, and `self.network`, which is.

    A method gives `build` (the network before the first task), `learn` and `scores`. Tasks may have any number of
    classes, and classes may come again: `self.tasks` holds the class ids of each task learned so far.
    """

    space: ClassVar[Space] = Space()
    backbone: Backbone

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.tasks: list[list[int]] = []
        self.trained = 0

    def setup(self) -> None:
        """Load the mounted weights. Raises SuiteError without a backbone."""
        self.backbone = load_backbone(self.context)
        if "augmentation" in type(self).space.root:
            chosen = replace(self.backbone.preprocess, augmentation=self.option("augmentation"))
            self.backbone.preprocess = chosen
        self.network = self.build().to(self.device)

    @property
    def width(self) -> int:
        """D, the length of the backbone's features."""
        return self.backbone.width

    def option(self, name: str) -> Any:
        """A hyperparameter by name; if the point lacks it, the first value of the space."""
        point = self.context.hyperparameters
        return point[name] if name in point else type(self).space.root[name].at(0.0)

    # --- classes and tasks --------------------------------------------------------------------------------------------

    @abstractmethod
    def build(self) -> nn.Module:
        """`self.network` before the first task, for no classes; depends on the context and the backbone only."""

    def grow(self, seen: int) -> None:
        """Let every part of the network that grows with the classes do so."""
        for part in self.network.modules():
            if isinstance(part, Growing):
                part.grow(seen)

    def open_task(self) -> None:
        """Add what belongs to one more task, `self.tasks[-1]`. Replayed for each task before a state is loaded."""

    def begin(self, classes: list[int]) -> int:
        """Make room for a task; returns the number of classes before. Call it first in `learn`."""
        before = self.enlarge(classes)
        self.tasks = [*self.tasks, sorted(classes)]
        self.trained = 0
        self.open_task()
        self.network.to(self.device)
        return before

    @property
    def current(self) -> Tensor:
        """Class ids of the task at hand, ascending, on the device."""
        return torch.tensor(self.tasks[-1], device=self.device)

    # --- state --------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "tasks": self.tasks}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen, self.steps, self.tasks = 0, [], []
        self.network = self.build().to(self.device)
        for classes in state["tasks"]:
            self.begin(classes)
        seen = self.seen
        super().load_state_dict({**state, "steps": []})  # the network has its size already
        self.seen, self.steps = seen, list(state["steps"])

    def report(self) -> LearnResult:
        """Stored: all floating-point numbers of the network, statistics included. Trainable: trained in this task."""
        stored = [*self.network.parameters(), *(b for b in self.network.buffers() if b.is_floating_point())]
        return LearnResult(stored_parameters=sum(p.numel() for p in stored), trainable_parameters=self.trained)

    # --- training -----------------------------------------------------------------------------------------------------

    def recipe(self) -> Recipe:
        """How the drawn hyperparameters say to train."""
        return Recipe.of(self.context.hyperparameters)

    def pool(self, task: Task, batch_size: int | None = None) -> Pool:
        """Shuffled, augmented batches of the task's data; `rows` of a batch index them."""
        size = batch_size or self.recipe().batch_size
        return Pool(task.images, task.labels, self.backbone.preprocess, size, self.device)

    def fit(
        self,
        network: nn.Module,
        source: Source,
        loss_of: Callable[[Batch], Tensor],
        recipe: Recipe,
        *,
        groups: list[dict[str, Any]] | None = None,
        before_step: Callable[[], None] | None = None,
        note: str = "",
    ) -> None:
        """Train what of `network` takes gradients (in `groups`, if given) on `loss_of(batch)`.

        The parameters trained are counted in `self.trained`; a second stage on the same ones is not counted again.
        """
        trainable: list[Tensor] = [p for p in network.parameters() if p.requires_grad]
        parameters: Parameters = groups if groups is not None else trainable
        self.trained = max(self.trained, sum(p.numel() for p in trainable))

        def tell(epoch: int, epochs: int, loss: float) -> None:
            self.progress(epoch, epochs, note, loss=loss)

        fit(network, parameters, source, loss_of, recipe, Hooks(before_step, tell))
        network.eval()

    # --- forwards -----------------------------------------------------------------------------------------------------

    def labels(self, task: Task) -> Tensor:
        """The task's labels, int64 [N], on the device."""
        return torch.from_numpy(task.labels).to(self.device)

    def batches(self, images: np.ndarray) -> Iterator[Tensor]:
        """Preprocessed pixels of the images (the test transform), batch by batch, in order."""
        for start in range(0, len(images), EVALUATION_BATCH):
            piece = torch.from_numpy(np.array(images[start : start + EVALUATION_BATCH]))
            yield self.backbone.preprocess.test(piece.to(self.device))

    def gather(self, images: np.ndarray, function: Callable[[Tensor], Tensor]) -> Tensor:
        """`function` of the preprocessed pixels of all images, in one pass without autograd, in evaluation mode."""
        self.network.eval()
        with torch.no_grad():
            return torch.cat([function(pixels) for pixels in self.batches(images)])

    def features(self, pixels: Tensor) -> Tensor:
        """The method's own representation [B, D'] of preprocessed pixels; the backbone's unless it has another."""
        features: Tensor = self.backbone(pixels)
        return features

    @abstractmethod
    def scores(self, pixels: Tensor) -> Tensor:
        """Scores [B, classes seen] of preprocessed pixels; each row depends on its own image only."""

    # --- answers ------------------------------------------------------------------------------------------------------

    def predict(self, images: np.ndarray) -> np.ndarray:
        return np.asarray(self.gather(images, self.scores).float().cpu().numpy())

    def embed(self, images: np.ndarray) -> np.ndarray:
        """Features float32 [N, D'] of `images`."""
        return np.asarray(self.gather(images, self.features).float().cpu().numpy())
