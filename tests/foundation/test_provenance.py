"""Where a run took place."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from suite.provenance import cpu_model, gpu_driver, gpus, memory_bytes, package_versions, source_revision, usable_cpus


def test_the_machine_is_described() -> None:
    assert memory_bytes() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert set(usable_cpus()) == os.sched_getaffinity(0)
    assert isinstance(cpu_model(), str)
    assert all(len(pair) == 2 for pair in gpus())
    assert isinstance(gpu_driver(), str)


def test_versions_are_those_that_are_installed() -> None:
    import numpy as np

    versions = package_versions()
    assert versions["python"] == platform.python_version()
    assert versions["numpy"] == np.__version__


def test_a_working_tree_has_a_commit_and_tells_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert source_revision(tmp_path) == ("", False)

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(
            ["git", "-C", tmp_path, *identity, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init")
    assert source_revision(tmp_path) == ("", False)
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-m", "one")
    assert source_revision(tmp_path) == (git("rev-parse", "HEAD"), False)
    (tmp_path / "a").write_text("2")
    assert source_revision(tmp_path) == (git("rev-parse", "HEAD"), True)
