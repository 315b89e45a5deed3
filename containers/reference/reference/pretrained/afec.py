"""AFEC (Wang et al., 2021, NeurIPS): elastic weight consolidation with active forgetting, on a pretrained ViT."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from reference.engine import Batch, Pool
from reference.optim import build_optimizer, set_rate
from reference.pretrained.heads import Part, WithHead
from reference.pretrained.sources import Watched
from reference.pretrained.spaces import WHOLE_NETWORK, space_of
from reference.pretrained.whole import WholeNetworkLearner, thawed
from reference.vit import Backbone
from suite.sdk import Choice, Space, Task

_FISHER_BATCH = 20  # lambda is tied to it: the gradient is that of a batch's mean


class AfecNetwork(WithHead[Backbone]):
    """The network, its values after the last task, their Fisher information, and the network of forgetting."""

    def __init__(self, body: Backbone, width: int) -> None:
        super().__init__(body, width)
        values = [p.detach().clone() for p in body.parameters()]
        self.anchor = nn.ParameterList([nn.Parameter(v, requires_grad=False) for v in values])
        self.fisher = nn.ParameterList([nn.Parameter(torch.zeros_like(v), requires_grad=False) for v in values])
        self.auxiliary = WithHead(copy.deepcopy(body), width)


class AFEC(WholeNetworkLearner):
    """Each epoch first trains an auxiliary network on the task alone; the main one is drawn to both, by Fisher weights.

    The auxiliary network goes on from task to task, as in the original code. One head for all classes, of which a task
    trains its own rows (the original has one head per task).
    """

    name = "AFEC"
    description = "Elastic weight consolidation with active forgetting on the whole ViT"
    space: ClassVar[Space] = space_of(
        WHOLE_NETWORK,
        {"ewc_lambda": Choice([10, 40, 80, 160]), "forget_lambda": Choice([0.0001, 0.001, 0.01])},
    )
    network: AfecNetwork

    def build(self) -> AfecNetwork:
        return AfecNetwork(thawed(self.backbone), self.width)

    def learn(self, task: Task) -> None:
        self.begin(task.classes)
        network, part = self.network, self.network.head.part(self.current)
        if len(self.tasks) == 1:
            self.learn_first(task, part)
        else:
            self.learn_later(task, part)
        network.head.put(part)
        self.stage("post")
        self.consolidate(self.fisher(network.body, part, task))

    def learn_first(self, task: Task, part: Part) -> None:
        """Plain fine-tuning."""
        body = self.network.body
        trained = nn.ModuleList([body, part])
        groups = self.groups(body, part)
        self.fit(trained, self.pool(task), lambda b: part.loss(body(b.images), b.labels), self.recipe(), groups=groups)

    def learn_later(self, task: Task, part: Part) -> None:
        """CE + lambda / 2 sum F (theta - theta*)^2 + lambda_e / 2 sum F_e (theta - theta_e)^2 (eq. 5 and 9)."""
        body, auxiliary, recipe = self.network.body, self.network.auxiliary, self.recipe()
        side = auxiliary.head.part(self.current)
        optimizer = build_optimizer(self.groups(auxiliary.body, side), recipe)
        anchors = list(self.network.anchor), list(self.network.fisher)
        forgotten: tuple[list[Tensor], list[Tensor]] = ([], [])
        retain: float = self.option("ewc_lambda")
        forget: float = self.option("forget_lambda")

        def before_epoch(epoch: int) -> None:
            nonlocal forgotten
            set_rate(optimizer, recipe.schedule.lr_at(epoch))
            self.one_epoch(self.pool(task), auxiliary.body, side, optimizer)
            forgotten = (
                [p.detach().clone() for p in auxiliary.body.parameters()],
                self.fisher(auxiliary.body, side, task),
            )

        def loss(batch: Batch) -> Tensor:
            values = list(body.parameters())
            retained = quadratic(values, *anchors)
            return (
                part.loss(body(batch.images), batch.labels)
                + retain / 2 * retained
                + forget / 2 * quadratic(values, *forgotten)
            )

        source = Watched(self.pool(task), before_epoch)
        self.fit(nn.ModuleList([body, part]), source, loss, recipe, groups=self.groups(body, part))
        auxiliary.head.put(side)

    @staticmethod
    def one_epoch(pool: Pool, body: nn.Module, part: Part, optimizer: torch.optim.Optimizer) -> None:
        """Train on the task alone."""
        for batch in pool.epoch():
            optimizer.zero_grad()
            part.loss(body(batch.images), batch.labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def fisher(self, body: nn.Module, part: Part, task: Task) -> list[Tensor]:
        """Diagonal empirical Fisher information of the body: mean over samples of the squared batch gradient."""
        values = list(body.parameters())
        total = [torch.zeros_like(v) for v in values]
        labels, preprocess = self.labels(task), self.backbone.preprocess
        stored = preprocess.store(task.images, self.device)
        for rows in torch.split(torch.arange(len(labels), device=self.device), _FISHER_BATCH):
            loss = functional.cross_entropy(
                part(body(preprocess.test(stored[rows]))), torch.searchsorted(part.classes, labels[rows])
            )
            for sum_, gradient in zip(total, torch.autograd.grad(loss, values, allow_unused=True), strict=True):
                if gradient is not None:
                    sum_.add_(gradient.square(), alpha=len(rows) / len(labels))
        return total

    @torch.no_grad()
    def consolidate(self, newest: list[Tensor]) -> None:
        """F <- (F t + F_t) / (t + 1); theta* <- theta."""
        done = len(self.tasks) - 1
        for kept, value in zip(self.network.fisher, newest, strict=True):
            kept.mul_(done).add_(value).div_(done + 1)
        for anchor, parameter in zip(self.network.anchor, self.network.body.parameters(), strict=True):
            anchor.copy_(parameter)


def quadratic(values: Sequence[Tensor], centres: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """Sum of w (theta - centre)^2."""
    terms = [(w * (v - c).square()).sum() for v, c, w in zip(values, centres, weights, strict=True)]
    return torch.stack(terms).sum()
