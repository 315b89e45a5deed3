"""Preparing as it happens on a real machine: killed in the middle, started twice, imported for nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from suite.data import registry

_PREPARE = """
import sys
from pathlib import Path
from suite.data import registry
registry.prepare(sys.argv[1], Path(sys.argv[2]))
"""


def _start(name: str, root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _PREPARE, name, str(root)])


def test_a_killed_preparation_leaves_nothing_that_counts(tmp_path: Path) -> None:
    process = _start("glyphs/arabic", tmp_path)
    partial = tmp_path / ".glyphs--arabic.partial" / "train"
    while not (partial.is_dir() and len(list(partial.iterdir())) >= 2):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert partial.is_dir()
    assert not registry.describe("glyphs/arabic", tmp_path).prepared
    registry.prepare("glyphs/arabic", tmp_path).verify()
    assert not partial.exists()


def test_two_processes_at_once_make_one_data_set(tmp_path: Path) -> None:
    both = [_start("glyphs/lisu", tmp_path) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    registry.verify("glyphs/lisu", tmp_path)


def test_importing_the_package_loads_no_heavy_library() -> None:
    code = (
        "import sys, suite.data, suite.data.registry; print(*{'PIL', 'sklearn', 'scipy', 'torch'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
