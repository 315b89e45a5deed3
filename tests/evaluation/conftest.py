"""Prepared data for the tiny track, and a lab to submit learners in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab  # type: ignore[import-not-found]
from misbehaving import LEARNERS  # type: ignore[import-not-found]

from suite.data import data_root, registry


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = data_root(tmp_path_factory.mktemp("data"))
    for name in ("digits", "letters-1:10"):
        registry.prepare(name, root)
    return root


@pytest.fixture
def lab(data_folder: Path) -> Iterator[Lab]:
    memory = Path("/dev/shm")  # the journal syncs every file: on a disk that is most of a tiny trial's time
    with pytest.MonkeyPatch.context() as patch:
        if memory.is_dir():
            patch.setattr(tempfile, "tempdir", str(memory))
        folder = tempfile.mkdtemp()
        yield Lab(Path(folder), data_folder, LEARNERS)
        shutil.rmtree(folder)
