"""What runs in a container without PyTorch, and what starts in half a second, imports little."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ["torch", "docker", "duckdb", "typer", "rich", "jinja2", "sklearn", "scipy", "PIL", "ray", "psutil"]


def loaded(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["suite.protocol", "suite.sdk", "suite.protocol.schema"])
def test_what_goes_into_images_imports_nothing_heavy(module: str) -> None:
    modules = loaded(f"import {module}")
    assert modules.isdisjoint(HEAVY)
    packages = {m.split(".")[1] for m in modules if m.startswith("suite.")}
    assert packages <= {"protocol", "sdk"}


@pytest.mark.parametrize("module", ["suite.tracks", "suite.submissions", "suite.execution", "suite.status"])
def test_the_foundation_imports_nothing_heavy(module: str) -> None:
    assert loaded(f"import {module}").isdisjoint(set(HEAVY) - {"psutil"})


def test_a_state_without_tensors_needs_no_torch(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("state")
    statement = (
        "import numpy as np, pathlib\n"
        "from suite.protocol import read_state, summarise_state, write_state\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        "write_state({'a': np.zeros(3)}, folder); read_state(folder); summarise_state(folder)"
    )
    assert "torch" not in loaded(statement)
