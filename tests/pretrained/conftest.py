"""A tiny ViT on disk, tiny tasks, and learners brought up as a container would bring them up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reference.pretrained.base import PretrainedLearner
from reference.vit.backbone import Architecture, Input
from safetensors.torch import save_file

from suite.protocol.messages import SetupParams
from suite.sdk import Context, Task
from suite.sdk.seeding import call_seed, reseed

SIZE = 16
TINY = Architecture(input=Input(size=SIZE), patch=8, width=32, depth=2, heads=2)

Bring = Callable[..., PretrainedLearner]


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    vit = TINY.build()
    for parameter in vit.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    save_file(vit.state_dict(), path, {"backbone": TINY.model_dump_json()})
    return path


def make_setup(
    weights: Path | None, hyperparameters: dict[str, Any] | None = None, tasks: int | None = 3
) -> SetupParams:
    return SetupParams.model_validate(
        {
            "image": {"height": SIZE, "width": SIZE},
            "learner_seed": 5,
            "hyperparameters": hyperparameters or {},
            "announcement": {"tasks": tasks, "classes_per_task": None},
            "exemplars": {"total": 20},
            "backbone": {"name": "tiny", "path": str(weights)} if weights else None,
        }
    )


@pytest.fixture
def bring(weights: Path) -> Bring:
    """Makes a learner of a class that has been through `setup`."""

    def bring_up(learner_class: type[PretrainedLearner], **hyperparameters: Any) -> PretrainedLearner:
        reseed(0)
        learner = learner_class(Context(make_setup(weights, hyperparameters)))
        learner.setup()
        return learner

    return bring_up


def make_task(index: int, classes: list[int], each: int = 6) -> Task:
    """Images of a class share a random pattern and differ by noise."""
    parts = []
    for label in classes:
        pattern = np.random.default_rng(label).integers(0, 256, (1, SIZE, SIZE, 3))
        noise = np.random.default_rng(100 + label).integers(-40, 41, (each, SIZE, SIZE, 3))
        parts.append(np.clip(pattern + noise, 0, 255).astype(np.uint8))
    labels = np.repeat(np.asarray(classes, np.int64), each)
    return Task(index, classes, np.concatenate(parts), labels)


TASKS = [make_task(0, [0, 1, 2]), make_task(1, [3], each=9), make_task(2, [4, 5])]
"""Unequal in classes and in images."""


def learn(learner: PretrainedLearner, task: Task) -> None:
    """As the server does it: reseeded for the call."""
    reseed(call_seed(5, task.index, "learn"))
    learner.learn(task)


def predict(learner: PretrainedLearner, images: np.ndarray) -> np.ndarray:
    reseed(call_seed(5, 0, "predict"))
    return learner.predict(images)


def as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
