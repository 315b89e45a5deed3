"""Tiny trials of the learners trained from scratch: real ResNet-32, 8x8 images, one epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from reference.batches import Batch
from reference.catalogue import SCRATCH
from reference.networks.incremental import frozen
from reference.scratch import ScratchLearner

from suite.protocol.messages import Code, ExemplarBudget, FirstTask, ImageShape, Response, SetupParams
from suite.sdk import Context, Session, Task
from suite.sdk.seeding import call_seed, reseed
from suite.sdk.server import load_class

SIDE = 8
SIZES = (2, 3, 1)
"""Classes of the three tasks: unequal, and one with a single class."""
PER_CLASS = 9
TOTAL_EXEMPLARS = 25
SEED = 7
WITHOUT_MEMORY = ("ft", "joint", "lwf", "mas")


@cache
def learner_class(slug: str) -> type[ScratchLearner]:
    found = load_class(SCRATCH[slug])
    assert issubclass(found, ScratchLearner)
    return found


def point(slug: str, **overrides: Any) -> dict[str, Any]:
    """The first value of every dimension, with short training."""
    values: dict[str, Any] = {name: d.at(0.0) for name, d in learner_class(slug).space.root.items()}
    values |= {"epochs": 1, "batch_size": 16, "num_milestones": 2, "lr_decay": 0.1}
    values |= {"post_ft_epochs": 1} if "post_ft_epochs" in values else {}
    return values | overrides


def setup(slug: str, *, budget: ExemplarBudget | None = None, side: int = SIDE, **overrides: Any) -> SetupParams:
    return SetupParams(
        image=ImageShape(height=side, width=side),
        hyperparameters=point(slug, **overrides),
        learner_seed=SEED,
        exemplars=budget or ExemplarBudget(total=TOTAL_EXEMPLARS),
    )


def learner(slug: str, **overrides: Any) -> Any:
    reseed(SEED)
    return learner_class(slug)(Context(setup(slug, **overrides)))


def make_task(
    index: int, classes: list[int], *, per_class: int = PER_CLASS, side: int = SIDE, past: Any = None
) -> Task:
    rng = np.random.default_rng(100 * index + len(classes))
    images = rng.integers(0, 256, (len(classes) * per_class, SIDE, SIDE, 3), dtype=np.uint8)
    images[: len(images) // 2] //= 2  # something to learn
    past_images, past_labels = past if past else (None, None)
    return Task(index, classes, images, np.repeat(np.asarray(classes, np.int64), per_class), past_images, past_labels)


def tasks(privileged: bool = False) -> list[Task]:
    """The stream: tasks of SIZES classes; with the privilege, the past comes along."""
    found: list[Task] = []
    start = 0
    for index, size in enumerate(SIZES):
        past = None
        if privileged and found:
            past = np.concatenate([t.images for t in found]), np.concatenate([t.labels for t in found])
        found.append(make_task(index, list(range(start, start + size)), past=past))
        start += size
    return found


@dataclass
class Strict:
    """What a trial of one fresh process per request left behind."""

    states: list[Path]
    answers: list[dict[str, Any]]
    scores: list[np.ndarray]


def ask(session: Session, method: str, **params: Any) -> Response:
    return session.handle({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def answer(session: Session, method: str, **params: Any) -> dict[str, Any]:
    response = ask(session, method, **params)
    assert response.error is None, response.error
    assert response.result is not None
    return response.result


def fresh_session(slug: str) -> Session:
    session = Session(learner_class(slug), lambda method, params: None)
    answer(session, "setup", **setup(slug).model_dump())
    return session


def run_strict(slug: str, folder: Path) -> Strict:
    """Every task and every prediction in a session of its own; only the state's files cross over."""
    result = Strict([], [], [])
    stream = tasks("past_data" in learner_class(slug).privileges)
    for task in stream:
        data, out = folder / f"data{task.index}", folder / f"state{task.index}"
        data.mkdir()
        out.mkdir()
        seen = [t for t in stream if t.index <= task.index]
        for part in seen if task.past_images is not None else [task]:
            for c in part.classes:
                np.save(data / f"{c:05d}.npy", part.images[part.labels == c])
        past = [c for t in seen[:-1] for c in t.classes] if task.past_images is not None else []
        state = str(result.states[-1]) if result.states else None
        params = {"task": task.index, "classes": task.classes, "past_classes": past, "data": str(data), "out": str(out)}
        result.answers.append(answer(fresh_session(slug), "learn", state=state, **params))
        result.states.append(out)
        scores = folder / f"scores{task.index}"
        scores.mkdir()
        np.save(folder / "items.npy", items())
        count = sum(SIZES[: task.index + 1])
        params = {"items": str(folder / "items.npy"), "count": len(items()), "classes": count, "task": task.index}
        answer(fresh_session(slug), "predict", state=str(out), out=str(scores), **params)
        result.scores.append(np.load(scores / "scores.npy"))
    return result


def run_continuing(slug: str) -> Any:
    """One learner that is never saved nor loaded; reseeded as a session would."""
    found = learner(slug)
    reseed(call_seed(SEED, 0, "setup"))
    found.setup()
    for task in tasks("past_data" in learner_class(slug).privileges):
        reseed(call_seed(SEED, task.index, "learn"))
        found.learn(task)
    return found


def items() -> np.ndarray:
    return make_task(9, [0, 1]).images


def batch_of(model: Any, task: Task) -> Any:
    """All images of a task as one augmented batch."""
    pool = model.pool((task.images, task.labels))
    return pool.batch(torch.arange(len(pool)))


def parameters(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """A copy of everything in the state of a module."""
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def unchanged(before: dict[str, torch.Tensor], module: torch.nn.Module) -> bool:
    after = module.state_dict()
    return before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


FIRST = FirstTask(epochs=3, lr=0.05, milestones=[1, 2], lr_decay=0.5, weight_decay=0.0)
DIVERGED = Code.DIVERGED


# --- oracles and learners between two tasks ------------------------------------------------------------------------

TASK_1, TASK_2 = make_task(0, [0, 1]), make_task(1, [2, 3, 4])
NO_DECAY: dict[str, Any] = {"weight_decay": 0.0, "scheduler": "cosine", "lr": 0.01}


def softmax(z: np.ndarray) -> Any:
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def ce(z: Any, y: Any) -> float:
    z, y = np.asarray(z, np.float64), np.asarray(y)
    return float(-np.log(softmax(z)[np.arange(len(y)), y]).mean())


def kd(z: Any, teacher: Any, t: float) -> float:
    z, teacher = np.asarray(z, np.float64), np.asarray(teacher, np.float64)
    return float(-(softmax(teacher / t) * np.log(softmax(z / t))).sum(1).mean())


def scores(network: Any, batch: Batch) -> np.ndarray:
    """Outputs in the network's present mode, in float64."""
    with torch.no_grad():
        return np.asarray(network(batch.images).double())


def after_first(slug: str, **overrides: Any) -> Any:
    model = learner(slug, **overrides)
    model.learn(TASK_1)
    return model


def enlarged(slug: str, **overrides: Any) -> tuple[Any, Any, Batch]:
    """A learner that has seen task 1 and has just been grown for task 2, its teacher, and a batch of both tasks."""
    model = after_first(slug, **overrides)
    teacher = frozen(model.network)
    model.enlarge(TASK_2.classes)
    model.network.train()
    images = np.concatenate([TASK_2.images[::3], TASK_1.images[::6]])
    labels = np.concatenate([TASK_2.labels[::3], TASK_1.labels[::6]])
    pool = model.pool((images, labels))
    return model, teacher, pool.batch(torch.arange(len(pool)))
