"""Real `suite submit` processes over a tiny track, against the real engine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from runs import Runs  # type: ignore[import-not-found]

from suite.data import data_root, registry
from suite.errors import InfrastructureError


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = data_root(tmp_path_factory.mktemp("data"))
    for name in ("digits", "letters-1:10"):
        registry.prepare(name, root)
    return root


@pytest.fixture
def runs(tmp_path: Path, data_folder: Path) -> Runs:
    from suite.sandbox import open_sandbox

    try:
        with open_sandbox("docker"):
            return Runs(tmp_path, data_folder)
    except InfrastructureError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
