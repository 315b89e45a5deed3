"""The example learner: nearest class mean in forty lines of numpy."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.protocol.messages import ImageShape, SetupParams
from suite.sdk import Context, Task

FILE = Path(__file__).parents[2] / "containers" / "examples" / "ncm" / "ncm.py"
NCM: Any = runpy.run_path(str(FILE))["NearestClassMean"]


def learner() -> Any:
    return NCM(Context(SetupParams(image=ImageShape(height=4, width=4), learner_seed=0)))


def task(index: int, classes: list[int], seed: int, per_class: int = 5) -> Task:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (len(classes) * per_class, 4, 4, 3), dtype=np.uint8)
    return Task(index, classes, images, np.repeat(classes, per_class))


def test_it_fits_on_one_screen() -> None:
    assert len(FILE.read_text().splitlines()) <= 40


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(0, 1000))
def test_it_scores_the_squared_distance_to_every_class_mean(sizes: list[int], seed: int) -> None:
    model, tasks, start = learner(), [], 0
    for index, size in enumerate(sizes):
        tasks.append(task(index, list(range(start, start + size)), seed + index))
        start += size
        model.learn(tasks[-1])
    item = np.random.default_rng(seed).integers(0, 256, (1, 4, 4, 3), dtype=np.uint8)
    scores = model.predict(item)
    assert scores.shape == (1, start)
    for t in tasks:
        for c in t.classes:
            mean = sum(image.astype(float) for image in t.images[t.labels == c]) / 5 / 255
            assert scores[0, c] == pytest.approx(-np.sum((mean - item[0] / 255) ** 2))


def test_a_class_that_comes_back_is_averaged_over_both_visits() -> None:
    model, first, again = learner(), task(0, [0, 1], 1), task(1, [1], 2, per_class=15)
    model.learn(first)
    model.learn(again)
    both = np.concatenate([first.images[first.labels == 1], again.images]) / 255
    np.testing.assert_allclose(model.sums[1] / model.counts[1], both.reshape(20, -1).mean(0))


def test_its_state_gives_the_same_scores() -> None:
    model, copy = learner(), learner()
    model.learn(task(0, [0, 1], 3))
    copy.load_state_dict(model.state_dict())
    items = task(0, [0], 9).images
    np.testing.assert_array_equal(copy.predict(items), model.predict(items))
