"""The PyTorch base class: networks that grow, and what is carried beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from suite.protocol import ImageShape, SetupParams, read_state, write_state
from suite.sdk import Context, Task
from suite.sdk.torch import TorchLearner


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """What a learner changes in this process is put back."""
    threads = torch.get_num_threads()
    state = torch.random.get_rng_state()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)
    torch.random.set_rng_state(state)


class Growing(TorchLearner):
    """One linear layer per task, a teacher, a plain list and an array."""

    carried = ("teacher", "history", "counts")
    network: nn.ModuleList

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.teacher = nn.Linear(2, 2)
        self.history: list[int] = []
        self.counts = np.zeros(2)

    def grow(self, seen: int) -> None:
        if self.seen == 0:
            self.network = nn.ModuleList()
        self.network.append(nn.Linear(3, seen - self.seen))

    def learn(self, task: Task) -> None:
        before = self.enlarge(task.classes)
        self.history.append(before)
        self.counts += 1
        with torch.no_grad():
            self.teacher.weight += 1

    def predict(self, images: np.ndarray) -> np.ndarray:
        x = torch.from_numpy(images).float().mean((1, 2))
        with torch.no_grad():
            scores: np.ndarray = torch.cat([layer(x) for layer in self.network], 1).numpy()
        return scores


def learner() -> Growing:
    setup = SetupParams(image=ImageShape(height=2, width=2), learner_seed=1, threads=1)
    return Growing(Context(setup))


def task(index: int, classes: list[int]) -> Task:
    return Task(index, classes, np.zeros((1, 2, 2, 3), np.uint8), np.zeros(1, np.int64))


def carried(state: Any, folder: Path) -> Any:
    write_state(state, folder)
    return read_state(folder)


def test_a_grown_learner_is_restored_in_a_fresh_one(tmp_path: Path) -> None:
    first = learner()
    for index, classes in enumerate([[0, 1, 2], [3, 4], [5]]):
        first.learn(task(index, classes))
    fresh = learner()
    fresh.load_state_dict(carried(first.state_dict(), tmp_path))
    images = np.random.default_rng(0).integers(0, 255, (4, 2, 2, 3), dtype=np.uint8)
    np.testing.assert_array_equal(fresh.predict(images), first.predict(images))
    assert (fresh.seen, fresh.steps) == (6, [3, 5, 6])
    assert fresh.history == [0, 3, 5]
    assert fresh.counts.tolist() == [3, 3]
    assert torch.equal(fresh.teacher.weight, first.teacher.weight)
    fresh.learn(task(3, [6, 7]))
    assert fresh.predict(images).shape == (4, 8)


def test_a_restored_learner_gives_the_same_state(tmp_path: Path) -> None:
    first = learner()
    first.learn(task(0, [0, 1]))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    again = learner()
    again.load_state_dict(carried(first.state_dict(), tmp_path / "a"))
    write_state(again.state_dict(), tmp_path / "b")
    for name in ("state.json", "tensors.safetensors", "arrays.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_used_learner_can_be_restored_to_an_earlier_state(tmp_path: Path) -> None:
    used = learner()
    used.learn(task(0, [0, 1]))
    state = carried(used.state_dict(), tmp_path)
    used.learn(task(1, [2, 3]))
    used.load_state_dict(state)
    assert (used.seen, len(used.network), used.history) == (2, 1, [0])


def test_classes_that_come_again_do_not_grow_the_network() -> None:
    first = learner()
    first.learn(task(0, [0, 1, 2]))
    first.learn(task(1, [1, 3]))
    first.learn(task(2, [0, 2]))
    assert (first.seen, first.steps, first.history) == (4, [3, 4], [0, 3, 4])


def test_learners_share_no_counts() -> None:
    first, second = learner(), learner()
    first.learn(task(0, [0]))
    assert (second.seen, second.steps) == (0, [])


def test_every_module_that_is_carried_counts_as_stored() -> None:
    first = learner()
    first.learn(task(0, [0, 1]))
    for parameter in first.teacher.parameters():
        parameter.requires_grad_(False)
    report = first.report()
    assert report.stored_parameters == (3 * 2 + 2) + (2 * 2 + 2)
    assert report.trainable_parameters == 3 * 2 + 2


def test_the_threads_are_those_that_setup_grants() -> None:
    setup = SetupParams(image=ImageShape(height=2, width=2), learner_seed=1, threads=2)
    Growing(Context(setup))
    assert torch.get_num_threads() == 2
