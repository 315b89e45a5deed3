"""BEEF: Bi-Compatible Class-Incremental Learning via Energy-Based Expansion and Fusion (Wang et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.classifiers import LinearHead
from reference.engine import Batch
from reference.networks.branched import BranchedNetwork
from reference.schedules import Recipe
from reference.scratch import ScratchLearner
from reference.spaces import scratch_space
from suite.sdk import Choice, Task

FUSION_RATE = 0.05
SAMPLING_STEPS, SAMPLING_RATE, SAMPLING_NOISE = 3, 0.01, 1e-3


class FusionLayers(nn.Module):
    """Two parameters per earlier task that scale and shift its backward prototype's logit; the identity at first."""

    def __init__(self, tasks: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(tasks))
        self.shift = nn.Parameter(torch.zeros(tasks))

    def forward(self, z: Tensor) -> Tensor:
        return (1 + self.scale) * z + self.shift


@dataclass
class Module:
    """The energy-based module that a task adds: heads on the newest branch's features."""

    new: LinearHead
    """Logits of the new classes."""
    backward: LinearHead | None
    """One logit per earlier task: "one of the classes of that task"; None in the first task."""
    forward: LinearHead
    """One logit per class seen: the energy that unknown inputs are given."""

    def parameters(self) -> list[nn.Parameter]:
        """Of all heads."""
        return [p for head in (self.new, self.backward, self.forward) if head is not None for p in head.parameters()]


class BEEF(ScratchLearner):
    """A new backbone per task, trained alone against prototypes of past and future, then fused with the old ones.

    Expansion: CE over [backward prototypes / logit_alignment, new classes] + energy_weight times the energy loss on
    inputs sampled from the model. Fusion (post_ft_epochs, rate 0.05, cosine): two parameters per earlier task, CE of
    the composed logits on a class-balanced set. Then everything is merged into one linear head. This is BEEF without
    compression (PyCIL's "ISO"); new backbones start as copies of the first one.

    PyCIL's code, which the papers' tables were made with, drops the old head's bias while fusing and masks, in the
    energy loss, the columns of all labels of the batch with 1e-9 instead of each row's own label with -inf. Both are
    mended here; option as_published = true brings them back. The energy loss is known to run to NaN: that ends the
    trial as diverged. A task without new classes only renews the exemplars. Scores: merged linear head.
    """

    name = "BEEF"
    description = "Energy-based expansion and fusion, without compression."
    space = scratch_space(
        {
            "post_ft_epochs": Choice([30, 70, 120, 160, 200]),
            "energy_weight": Choice([0.001, 0.005, 0.01, 0.02, 0.05]),
            "logit_alignment": Choice([1.1, 1.4, 1.7, 2.0, 2.3]),
        },
        head="linear",
        as_published=False,
    )
    network: BranchedNetwork

    def build(self, classes: int) -> BranchedNetwork:
        return BranchedNetwork.whole(self.backbone(), classes)

    def grow(self, seen: int) -> None:
        if self.seen == 0:
            super().grow(seen)
        else:
            self.network.grow(seen, origin="first")

    def learn(self, task: Task) -> None:
        sizes = [end - start for start, end in pairwise([0, *self.steps])]
        old = self.enlarge(task.classes)
        if self.seen > old:
            module = self.new_module(sizes, old)
            recipe = self.recipe_for(task)
            self.expand(task, module, sizes, old, recipe)
            self.stage("post")
            fusion = FusionLayers(len(sizes)).to(self.device)
            if module.backward is not None and len(self.memory):
                self.fuse(task, module, fusion, sizes, recipe)
            self.merge(module, fusion, sizes)
        self.remember(task)

    def new_module(self, sizes: list[int], old: int) -> Module:
        """Fresh heads; in the first task the network's own head takes the new classes."""
        d = self.network.dimension
        return Module(
            new=LinearHead(d, self.seen - old).to(self.device),
            backward=LinearHead(d, len(sizes)).to(self.device) if sizes else None,
            forward=LinearHead(d, self.seen).to(self.device),
        )

    # --- expansion ----------------------------------------------------------------------------------------------------

    def expand(self, task: Task, module: Module, sizes: list[int], old: int, recipe: Recipe) -> None:
        """Train the newest branch and the module's heads."""
        branch = self.network.branches[-1]
        targets = self.relabelling(sizes, old)
        parameters = [*branch.parameters(), *module.parameters()]
        self.fit(
            self.pool(self.with_memory(task)),
            lambda batch: self.expansion_loss(batch, branch, module, targets),
            recipe,
            parameters=parameters,
            network=branch,
            note="expansion",
        )

    def relabelling(self, sizes: list[int], old: int) -> Tensor:
        """int64 [C]: an old class becomes the index of its task, a new class follows the tasks."""
        tasks = [i for i, size in enumerate(sizes) for _ in range(size)]
        return torch.tensor(tasks + [len(sizes) + c - old for c in range(old, self.seen)], device=self.device)

    def logits(self, features: Tensor, module: Module) -> tuple[Tensor, Tensor]:
        """Training logits [B, tasks + C_new] (backward part divided by the alignment) and forward logits [B, C]."""
        new = module.new(features)
        if module.backward is not None:
            new = torch.cat([module.backward(features) / self.number("logit_alignment"), new], 1)
        return new, module.forward(features)

    def expansion_loss(self, batch: Batch, branch: nn.Module, module: Module, targets: Tensor) -> Tensor:
        """CE(relabelled) + energy_weight L_energy."""
        z, _ = self.logits(branch(batch.images), module)
        loss = functional.cross_entropy(z, targets[batch.labels])
        samples = self.sample(batch.images, branch, module)
        trained, forward = self.logits(branch(samples), module)
        energy = self.energy_loss(trained, forward, batch.labels, targets[batch.labels])
        return loss + self.number("energy_weight") * energy

    def sample(self, images: Tensor, branch: nn.Module, module: Module) -> Tensor:
        """Inputs of low forward energy: from images turned by 180 degrees, descend on -log(sum of forward mass)."""
        branch.eval()
        x = torch.rot90(images, 2, (2, 3))
        for _ in range(SAMPLING_STEPS):
            x = x.detach().requires_grad_(True)
            trained, forward = self.logits(branch(x), module)
            mass = torch.cat([trained, forward], 1).softmax(1)[:, trained.shape[1] :].sum()
            (gradient,) = torch.autograd.grad(-mass.log(), x)
            x = x.detach() - SAMPLING_RATE * gradient + SAMPLING_NOISE * torch.randn_like(x)
        branch.train()
        return x.detach()

    def energy_loss(self, trained: Tensor, forward: Tensor, labels: Tensor, own: Tensor) -> Tensor:
        """CE of [training, forward] logits against each label's forward logit, its training logit masked."""
        z = torch.cat([trained, forward], 1)
        if self.option("as_published"):
            columns = torch.zeros(z.shape[1], dtype=torch.bool, device=z.device).index_fill(0, own, value=True)
            z = z.masked_fill(columns, 1e-9)
        else:
            z = z.scatter(1, own.unsqueeze(1), -torch.inf)
        return functional.cross_entropy(z, labels + trained.shape[1])

    # --- fusion -------------------------------------------------------------------------------------------------------

    def fuse(self, task: Task, module: Module, fusion: FusionLayers, sizes: list[int], recipe: Recipe) -> None:
        """Train the fusion layers on a class-balanced set; everything else is fixed, in evaluation mode."""
        data = self.balanced(task)
        self.network.eval()

        def loss(batch: Batch) -> Tensor:
            with torch.no_grad():
                features = self.network.features(batch.images)
            return functional.cross_entropy(self.compose(features, module, fusion, sizes), batch.labels)

        recipe = recipe.rescaled(epochs=self.option("post_ft_epochs"), lr=FUSION_RATE, kind="cosine")
        self.fit(self.pool(data), loss, recipe, network=fusion, note="fusion")

    def compose(self, features: Tensor, module: Module, fusion: FusionLayers, sizes: list[int]) -> Tensor:
        """Logits [B, C]: the old head plus each task's fused backward logit, then the new classes."""
        head, d, old = self.network.head, self.network.dimension, sum(sizes)
        assert module.backward is not None  # noqa: S101  (for the type checker)
        bias = None if self.option("as_published") else head.bias[:old]
        before = functional.linear(features[:, :-d], head.weight[:old, :-d], bias)
        back = fusion(module.backward(features[:, -d:]))
        spread = torch.cat([back[:, i : i + 1].expand(-1, size) for i, size in enumerate(sizes)], 1)
        return torch.cat([before + spread, module.new(features[:, -d:])], 1)

    @torch.no_grad()
    def merge(self, module: Module, fusion: FusionLayers, sizes: list[int]) -> None:
        """Write old head, fused backward prototypes and new head into the one linear head."""
        head, d, old = self.network.head, self.network.dimension, sum(sizes)
        head.weight[old:, :-d] = 0
        head.weight[old:, -d:] = module.new.weight
        head.bias[old:] = module.new.bias
        if module.backward is not None:
            task_of = torch.repeat_interleave(torch.tensor(sizes, device=self.device))
            scale = 1 + fusion.scale
            head.weight[:old, -d:] = (scale.unsqueeze(1) * module.backward.weight)[task_of]
            head.bias[:old] += fusion(module.backward.bias)[task_of]
