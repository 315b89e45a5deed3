"""The one entry point of all reference images, and what runs on a GPU only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from reference.catalogue import METHODS
from reference.gradients import Eager, Graphed

from suite.sdk import Context
from tests.reference.cases import TASK_1, TASK_2, learner_class, setup

ROOT = Path(__file__).parents[2]


def launch(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "containers" / "reference")])
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "describe", "params": {}}) + "\n"
    return subprocess.run(
        [sys.executable, "-m", "reference", *arguments],
        input=request,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, **variables},
        timeout=120,
        check=False,
    )


def test_the_launcher_serves_the_method_that_its_variable_names() -> None:
    done = launch(REFERENCE_METHOD="replay")
    assert json.loads(done.stdout)["result"]["name"] == "Replay"


def test_an_unknown_method_is_refused_with_the_list_of_those_there_are() -> None:
    done = launch("nothing")
    assert done.returncode != 0
    assert all(slug in done.stderr for slug in METHODS)


def on_gpu(slug: str, **overrides: Any) -> Any:
    """A learner whose device is the GPU."""
    found = learner_class(slug)
    return found(Context(setup(slug, **overrides).model_copy(update={"device": "cuda"})))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("slug", ["replay", "wa", "lucir", "podnet", "der", "beef"])
def test_a_replayed_graph_gives_the_gradients_of_the_eager_step(slug: str) -> None:
    """Both are run over the same batches; the loss of the second task is what methods differ in."""
    losses: dict[type, list[Any]] = {}
    for kind in (Eager, Graphed):
        model = on_gpu(slug, epochs=4, batch_size=4)
        model.graphs = kind is Graphed
        torch.manual_seed(0)
        seen: list[Any] = losses.setdefault(kind, [])
        model.progress = lambda epoch, epochs, note, loss, seen=seen: seen.append(loss)
        model.learn(TASK_1)
        model.learn(TASK_2)
    assert losses[Graphed][-1] == pytest.approx(losses[Eager][-1], rel=0.05)
