"""EASE's prototypes and scores against loops in numpy, with unequal tasks."""

from __future__ import annotations

import numpy as np
from reference.pretrained.ease import Ease

from tests.pretrained.cases import POINTS
from tests.pretrained.conftest import TASKS, Bring, learn, make_task, predict


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def mixed(means: dict[tuple[int, int], np.ndarray], label: int, home: int, space: int, classes: range) -> np.ndarray:
    """The synthesised prototype of `label` in `space`."""
    others = [c for c in classes if (c, space) in means]
    weights = np.exp([cosine(means[label, home], means[c, home]) for c in others])
    weights /= weights.sum()
    return np.asarray(sum(w * means[c, space] for w, c in zip(weights, others, strict=True)))


def test_scores_follow_the_paper_with_unequal_tasks(bring: Bring) -> None:
    learner = bring(Ease, **POINTS["ease"])
    for task in TASKS:
        learn(learner, task)
    home, classes, spaces = [0, 0, 0, 1, 2, 2], range(6), range(3)
    means: dict[tuple[int, int], np.ndarray] = {}
    for index, task in enumerate(TASKS):
        features = learner.embed(task.images).astype(np.float64).reshape(len(task.labels), 3, -1)
        for label in task.classes:
            for space in range(index + 1):
                means[label, space] = features[task.labels == label, space].mean(0)
    complete = {
        (c, s): means[c, s] if s <= home[c] else mixed(means, c, home[c], s, classes) for c in classes for s in spaces
    }

    queries = make_task(9, [0, 3, 5], each=2).images
    for row, feature in zip(
        predict(learner, queries), learner.embed(queries).reshape(-1, 3, learner.width), strict=True
    ):
        for c in classes:
            own = cosine(feature[home[c]], complete[c, home[c]])
            others = sum(cosine(feature[s], complete[c, s]) for s in spaces if s != home[c])
            np.testing.assert_allclose(row[c], own + 0.1 * others / 2, atol=1e-5)


def test_earlier_adapters_do_not_move(bring: Bring) -> None:
    learner = bring(Ease, **POINTS["ease"])
    assert isinstance(learner, Ease)
    adapters = learner.network.adapters
    learn(learner, TASKS[0])
    before = [p.clone() for p in adapters[0].parameters()]
    learn(learner, make_task(1, [3, 4]))
    after = list(adapters[0].parameters())
    assert all((a == b).all() for a, b in zip(before, after, strict=True))
    assert all((p != 0).any() for name, p in adapters[1].named_parameters() if "up" in name)
