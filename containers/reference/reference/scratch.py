"""What every learner trained from scratch shares: its settings, its training call, its memory and its scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from reference.augment import scratch_transform
from reference.classifiers import LinearHead
from reference.engine import Batch, Hooks, Pool, Source, apply, fit
from reference.memory import ExemplarMemory, Selection, herding, joined
from reference.networks.incremental import IncrementalNetwork
from reference.networks.resnet import backbone_for
from reference.optim import Parameters
from reference.schedules import Recipe
from reference.spaces import scratch_space
from suite.protocol import LearnResult
from suite.protocol.state import split
from suite.sdk import Context, DivergedError, Space, Task
from suite.sdk.torch import TorchLearner

EPSILON = 1e-8
Arrays = tuple[np.ndarray, np.ndarray]


class ScratchLearner(TorchLearner):
    """A learner of the from-scratch group; a method adds `learn`, and says where it differs.

    Carried: the network, the exemplar memory, and the class means if scores come from the nearest mean of exemplars.
    The frozen copy of the network that many methods distil from is made at the start of a task, so it is not carried.
    """

    space: ClassVar[Space] = scratch_space(head="linear")
    carried: ClassVar[tuple[str, ...]] = ("memory", "means")
    selection: ClassVar[Selection] = "herding"
    last_relu: ClassVar[bool] = True
    network: IncrementalNetwork

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.options = dict(context.hyperparameters)
        setup = context.setup
        self.recipe = Recipe.of(self.options)
        self.transform = scratch_transform(setup.image.height, setup.image.channels, self.option("augmentation"))
        self.memory = ExemplarMemory(setup.exemplars)
        self.means: np.ndarray | None = None
        """L2-normalised class means of the exemplars, float32 [classes, D] (NaN-free; 0 for a class without any)."""

    def option(self, name: str) -> Any:
        """A hyperparameter by name; if the point lacks it, the first value of the space."""
        return self.options[name] if name in self.options else type(self).space.root[name].at(0.0)

    # --- network ------------------------------------------------------------------------------------------------------

    def grow(self, seen: int) -> None:
        if self.seen == 0:
            self.network = self.build(seen).to(self.device)
        else:
            self.network.grow(seen)

    def build(self, classes: int) -> Any:
        """A new network for the first `classes` classes."""
        backbone = self.backbone()
        return IncrementalNetwork(backbone, LinearHead(backbone.dimension, classes))

    def backbone(self) -> Any:
        """A new backbone for the trial's image size."""
        image = self.context.setup.image
        return backbone_for(image.height, image.channels, last_relu=self.last_relu)

    # --- training -----------------------------------------------------------------------------------------------------

    def recipe_for(self, task: Task) -> Recipe:
        """The drawn settings, or the fixed ones of the first task."""
        return self.recipe.for_first_task(self.context.setup.first_task) if task.is_first else self.recipe

    def pool(self, data: Arrays, batch_size: int | None = None) -> Pool:
        """Shuffled, augmented batches of (images, labels)."""
        return Pool(*data, self.transform, batch_size or self.recipe.batch_size, self.device)

    def with_memory(self, task: Task) -> Arrays:
        """The task's data and all exemplars."""
        return joined((task.images, task.labels), self.memory.arrays())

    def fit(
        self,
        source: Source,
        loss_of: Callable[[Batch], Tensor],
        recipe: Recipe,
        *,
        parameters: Parameters | None = None,
        before_step: Callable[[], None] | None = None,
        note: str = "",
        network: nn.Module | None = None,
    ) -> None:
        """Train on `loss_of(batch)`: all parameters that take gradients, unless `parameters` are given."""
        network = self.network if network is None else network
        if parameters is None:
            parameters = [p for p in network.parameters() if p.requires_grad]

        def tell(epoch: int, epochs: int, loss: float) -> None:
            self.progress(epoch, epochs, note, loss=loss)

        fit(network, parameters, source, loss_of, recipe, Hooks(before_step, tell))

    # --- memory -------------------------------------------------------------------------------------------------------

    def embed(self, images: np.ndarray) -> np.ndarray:
        """Features float32 [N, D] of uint8 images [N, H, W, C], with the test-time transform."""
        self.network.eval()
        return apply(self.network.features, images, self.transform, self.device)

    def normalised(self, images: np.ndarray) -> np.ndarray:
        """`embed`, each row divided by its norm."""
        features = self.embed(images)
        norms: np.ndarray = np.linalg.norm(features, axis=1, keepdims=True)
        result: np.ndarray = features / (norms + EPSILON)
        return result

    def remember(self, task: Task) -> None:
        """Shrink the old classes' exemplars to the new quota, choose those of the task's classes, renew the means."""
        quota = self.memory.quota(self.seen)
        self.memory.reduce(quota)
        for label in task.classes:
            images = task.images[task.labels == label]
            self.memory.put(label, images[self.select(images, quota)])
        if self.option("head") == "nme":
            self.means = self.exemplar_means()

    def select(self, images: np.ndarray, quota: int) -> list[int]:
        """Rows of the images of one class to remember, best first."""
        if self.selection == "first":
            return list(range(min(quota, len(images))))
        if self.selection == "random":
            return [int(i) for i in torch.randperm(len(images))[:quota]]
        features = self.normalised(images)
        if not np.isfinite(features).all():
            raise DivergedError("the network's features are not finite")
        return herding(features, quota)

    def exemplar_means(self) -> np.ndarray:
        """Class means of the normalised features of the exemplars, normalised again: float32 [classes, D]."""
        rows = []
        for label in range(self.seen):
            images = self.memory.of_class(label)
            mean = self.normalised(images).mean(0) if images is not None else np.zeros(self.network.backbone.dimension)
            rows.append(mean / (np.linalg.norm(mean) + EPSILON))
        return np.stack(rows).astype(np.float32)

    # --- answers ------------------------------------------------------------------------------------------------------

    def predict(self, images: np.ndarray) -> np.ndarray:
        """Scores of the option `head`: the classifier's, or minus the squared distance to the class means (`nme`)."""
        if self.option("head") == "nme" and self.means is not None:
            return self.nearest_means(self.normalised(images))
        self.network.eval()
        return apply(self.scores, images, self.transform, self.device)

    def scores(self, x: Tensor) -> Tensor:
        """What the classifier says of network input [B, C, H, W]."""
        return self.network(x)  # type: ignore[no-any-return]

    def nearest_means(self, features: np.ndarray) -> np.ndarray:
        """Minus the squared distances [N, classes] of normalised features to the class means."""
        assert self.means is not None  # noqa: S101  (for the type checker)
        distances = np.asarray(((features[:, None] - self.means[None]) ** 2).sum(2))
        return -distances

    def classifier(self) -> np.ndarray:
        """Weights [D, classes] of the classification layer."""
        return self.network.head.matrix().float().cpu().numpy()

    def report(self) -> LearnResult:
        """Stored parameters are all floating-point numbers of the state (BatchNorm statistics and means included)."""
        parts = split(self.state_dict())
        stored = sum(t.numel() for t in parts.tensors.values() if t.is_floating_point())
        stored += sum(a.size for a in parts.arrays.values() if a.dtype.kind == "f")
        parameters = list(self.network.parameters())
        return LearnResult(
            stored_parameters=stored,
            trainable_parameters=sum(p.numel() for p in parameters if p.requires_grad),
            exemplars=self.memory.counts(),
            metrics={"network_parameters": float(sum(p.numel() for p in parameters))},
        )
