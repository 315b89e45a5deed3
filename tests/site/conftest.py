"""A results folder with every kind of entry, and the site built from it once for all tests."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from suite.protocol import Manifest
from suite.site import build
from suite.status import Status
from suite.store import EntrySummary, Results, summarise_run
from tests.store.factory import SPACE, START, TRACK, write_run

SUBMISSION = """
slug = "mine"
title = "My method"
description = "It learns."
authors = ["A. Author"]
image = "mine:1"
group = "scratch"
source = "https://example.org/mine"
paper = "A paper"
paper_url = "https://example.org/paper"
"""


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_run(folder, "mine", skill=0.9)
    write_run(folder, "replay", skill=0.7)
    write_run(folder, "failing", failed={("tools", 1): Status.OUT_OF_MEMORY}, failed_draws=[1])
    write_run(folder, "hopeless", failed_draws=[0, 1, 2])
    write_run(folder, "preset", hyperparameters={"lr": 0.5, "scheduler": "step"})
    write_run(folder, "joint", manifest=Manifest(name="joint", space=SPACE, privileges=["past_data"]))
    write_run(folder, "mine", image="mine:0", skill=0.4, started=START - timedelta(days=3))
    write_run(folder, "mine", suite_version="0.0.1", started=START - timedelta(days=9))
    write_run(folder, "mine", track_data=TRACK | {"name": "other", "title": "Another track", "is_reduced": False})
    return folder


@pytest.fixture(scope="session")
def entries(results: Path) -> list[EntrySummary]:
    store = Results(results)
    store.refresh()
    return [summarise_run(store.run(run)) for run in store.run_ids()]


@pytest.fixture(scope="session")
def submissions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("submissions")
    (folder / "mine.toml").write_text(SUBMISSION)
    return folder


@pytest.fixture(scope="session")
def site(results: Path, submissions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = build(results, tmp_path_factory.mktemp("built") / "site", submissions)
    return index.parent
