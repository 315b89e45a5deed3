"""Starts `suite` as a user would, and reads what it left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite.store import Journal, Results, run_directories

ROOT = Path(__file__).parents[2]
NCM_CLASS = f"{ROOT}/containers/examples/ncm/ncm.py:NearestClassMean"
NCM_IMAGE = "suite-ncm:latest"
REPLAY_IMAGE = "suite-reference:replay"

TRACK = """
name = "tiny"
title = "Tiny"
summary = "For tests."
group = "scratch"
is_reduced = true
scenario = "4 + 3x2"
draws = 1
seeds = 1

[tuning]
data_set = "letters-1:10"

[[evaluation]]
data_set = "digits"
similarity = "low"

[exemplars]
total = 40

[first_task]
epochs = 1
lr = 0.01
milestones = []
lr_decay = 0.1
weight_decay = 0.0005

[space.epochs]
kind = "choice"
values = [1]

[space.batch_size]
kind = "choice"
values = [32]

[budgets]
memory_bytes = 2147483648
state_bytes = 33554432
scratch_bytes = 67108864
"""


@dataclass(frozen=True)
class Runs:
    """A folder of results and the track that fills it."""

    folder: Path
    data: Path

    def arguments(self, image: str, results: str, *more: str) -> list[str]:
        track = self.folder / "tiny.toml"
        track.write_text(TRACK)
        where = ["--track", str(track), "--results", str(self.folder / results), "--data", str(self.data)]
        return [sys.executable, "-c", "from suite.cli import main; main()", "submit", image, *where, *more]

    def start(self, image: str, results: str, *more: str) -> subprocess.Popen[str]:
        """A `suite submit` in a process group of its own, in the background."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "containers" / "reference")}
        return subprocess.Popen(
            self.arguments(image, results, "--plain", *more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def submit(self, image: str, results: str, *more: str) -> str:
        """A `suite submit` that must end well; returns what it said on stderr."""
        process = self.start(image, results, *more)
        _, err = process.communicate(timeout=280)
        assert process.returncode == 0, err
        return err

    def counts(self, results: str) -> dict[tuple[str, str, int], list[list[int]]]:
        """Right predictions per phase, data set and seed: one row per task."""
        (folder,) = run_directories(self.folder / results)
        return {
            (t.key.phase, t.key.data_set, t.key.seed_index): [r.correct for r in t.tasks]
            for t in Journal(folder).trials()
        }

    def export(self, results: str) -> dict[str, Any]:
        """The comparable tables."""
        store = Results(self.folder / results)
        store.refresh()
        files = store.export("json", self.folder / f"{results}-export", comparable=True)
        return {file.name: json.loads(file.read_text()) for file in files}


def left_behind() -> list[str]:
    """Containers and volumes with the suite's marks that exist now."""
    import docker

    client = docker.from_env()
    try:
        marked = {"label": "continual-suite.run"}
        containers = [str(c.name) for c in client.containers.list(all=True, filters=marked)]
        return containers + [str(v.name) for v in client.volumes.list(filters=marked)]
    finally:
        client.close()
