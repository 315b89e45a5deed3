"""What every learner trained from scratch shares: its settings, its training call, its memory and its scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from reference.allocator import keep_freed_memory
from reference.augment import scratch_transform
from reference.classifiers import LinearHead
from reference.engine import EVAL_BATCH, Batch, Hooks, Pool, Source, apply, fit, warm_up
from reference.memory import ExemplarMemory, Selection, herding, joined
from reference.networks.incremental import IncrementalNetwork, Network
from reference.networks.resnet import ResNet, backbone_for
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
    graphs: ClassVar[bool] = False
    """Whether training steps are replayed from CUDA graphs; off until it has been measured on a GPU."""
    network: Network

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.options = dict(context.hyperparameters)
        setup = context.setup
        self.recipe = Recipe.of(self.options)
        self.transform = scratch_transform(setup.image.height, setup.image.channels, self.option("augmentation"))
        self.memory = ExemplarMemory(setup.exemplars)
        self.means: np.ndarray | None = None
        """L2-normalised class means of the exemplars, float32 [classes, D]; None without nearest-mean scores."""

    def setup(self) -> None:
        """Warm up what needs no data: the allocator, and on a GPU the context and the convolution kernels."""
        keep_freed_memory()
        if self.device.type == "cuda":
            image = self.context.setup.image
            warm_up(self.backbone().to(self.device), image.height, image.channels, self.recipe.batch_size, self.device)

    def option(self, name: str) -> Any:
        """A hyperparameter by name; if the point lacks it, the first value of the space."""
        return self.options[name] if name in self.options else type(self).space.root[name].at(0.0)

    def number(self, name: str) -> float:
        """A hyperparameter that is a number."""
        return float(self.option(name))

    @property
    def eval_batch(self) -> int:
        """Images per batch of feature extraction."""
        return EVAL_BATCH

    @property
    def nearest_mean(self) -> bool:
        """Whether scores come from the nearest mean of exemplars, as the option `head` says."""
        return "head" in type(self).space.root and self.option("head") == "nme"

    # --- network ------------------------------------------------------------------------------------------------------

    def grow(self, seen: int) -> None:
        if self.seen == 0:
            self.network = self.build(seen).to(self.device)
        else:
            self.network.grow(seen)

    @property
    def scoring(self) -> Network:
        """The network that features and scores come from."""
        return self.network

    def build(self, classes: int) -> Network:
        """A new network for the first `classes` classes."""
        backbone = self.backbone()
        return IncrementalNetwork(backbone, LinearHead(backbone.dimension, classes))

    def backbone(self) -> ResNet:
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

        hooks = Hooks(before_step, tell, self.option("precision"), self.graphs)
        fit(network, parameters, source, loss_of, recipe, hooks)

    # --- memory -------------------------------------------------------------------------------------------------------

    def embed(self, images: np.ndarray) -> np.ndarray:
        """Features float32 [N, D] of uint8 images [N, H, W, C], with the test-time transform."""
        network = self.scoring.eval()
        return apply(network.features, images, self.transform, self.device, self.eval_batch)

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
        if self.nearest_mean:
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

    def balanced(self, task: Task) -> Arrays:
        """Exemplars and as many images of each of the task's classes, chosen likewise; the memory stays as it is."""
        quota = self.memory.quota(self.seen)
        images, labels = self.memory.arrays(quota)
        keep = ~np.isin(labels, task.classes)
        parts = [(images[keep], labels[keep])]
        for label in task.classes:
            own = task.images[task.labels == label]
            chosen = own[self.select(own, quota)]
            parts.append((chosen, np.full(len(chosen), label, np.int64)))
        return joined(*parts)

    def exemplar_means(self) -> np.ndarray | None:
        """Class means of the normalised features of the exemplars, normalised again: float32 [classes, D].

        0 for a class without exemplars; None if there are none at all.
        """
        images, labels = self.memory.arrays()
        if not len(labels):
            return None
        features = self.normalised(images)
        means = np.zeros((self.seen, features.shape[1]), np.float32)
        for label in self.memory.classes:
            mean = features[labels == label].mean(0)
            means[label] = mean / (np.linalg.norm(mean) + EPSILON)
        return means

    # --- answers ------------------------------------------------------------------------------------------------------

    def predict(self, images: np.ndarray) -> np.ndarray:
        """Scores of the option `head`: the classifier's, or minus the squared distance to the class means (`nme`)."""
        if self.nearest_mean and self.means is not None:
            return self.nearest_means(self.normalised(images))
        return apply(self.scoring.eval(), images, self.transform, self.device)

    def nearest_means(self, features: np.ndarray) -> np.ndarray:
        """Minus the squared distances [N, classes] of normalised features to the class means."""
        assert self.means is not None  # noqa: S101  (for the type checker)
        distances = np.asarray(((features[:, None] - self.means[None]) ** 2).sum(2))
        return -distances

    def classifier(self) -> np.ndarray:
        """Weights [D, classes] of the classification layer."""
        weights: np.ndarray = self.scoring.head.matrix().float().cpu().numpy()
        return weights

    def report(self) -> LearnResult:
        """Stored parameters are all floating-point numbers of the state (BatchNorm statistics and means included)."""
        parts = split(self.state_dict())
        stored = sum(t.numel() for t in parts.tensors.values() if t.is_floating_point())
        stored += sum(a.size for a in parts.arrays.values() if a.dtype.kind == "f")
        parameters = list(self.scoring.parameters())
        return LearnResult(
            stored_parameters=stored,
            trainable_parameters=sum(p.numel() for p in parameters if p.requires_grad),
            exemplars=self.memory.counts(),
            metrics={"network_parameters": float(sum(p.numel() for p in parameters))},
        )
