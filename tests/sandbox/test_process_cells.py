"""What is particular to learners that are plain child processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from suite.protocol import DescribeParams
from suite.sandbox import Launch
from suite.sandbox.process import ProcessSandbox
from tests.sandbox.support import LEARNERS, LIMITS, Runtime, learn


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[ProcessSandbox]:
    with ProcessSandbox(tmp_path / "cells") as sandbox:
        yield sandbox


def child(cell: Any) -> psutil.Process:
    return psutil.Process(cell._process.pid)


def test_modules_are_found_from_the_working_folder(
    sandbox: ProcessSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").write_text("")
    (tmp_path / "ours" / "mine.py").write_text((LEARNERS / "acts.py").read_text())
    monkeypatch.chdir(tmp_path)
    for image in ("ours.mine:Acts", "ours/mine.py:Acts"):
        assert sandbox.identify(image).manifest.name == "Acts"


def test_the_environment_is_made_not_inherited(sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    cell = sandbox.start(Launch(f"{LEARNERS}/acts.py:Acts", LIMITS))
    try:
        cell.call("describe", DescribeParams(), 30)
        environment = child(cell).environ()
    finally:
        cell.close()
    assert "SECRET_TOKEN" not in environment
    assert environment["OMP_NUM_THREADS"] == "1"
    assert environment["CUDA_VISIBLE_DEVICES"] == ""


def test_a_learner_runs_on_its_cpus_and_moves_when_it_resumes(sandbox: ProcessSandbox) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    runtime = Runtime("process", sandbox, f"{LEARNERS}/acts.py:Acts")
    with runtime.cell("learn:threads", 3, cpuset=(cpus[0],)) as cell:
        assert child(cell).cpu_affinity() == [cpus[0]]
        learn(cell)
        cell.pause()
        assert child(cell).status() == psutil.STATUS_STOPPED
        cell.resume((cpus[-1],))
        threads = [os.sched_getaffinity(thread.id) for thread in child(cell).threads()]
    assert len(threads) >= 4
    assert threads == [{cpus[-1]}] * len(threads)


def test_limits_of_files_are_set(sandbox: ProcessSandbox) -> None:
    with Runtime("process", sandbox, f"{LEARNERS}/acts.py:Acts").cell() as cell:
        process = child(cell)
        assert process.rlimit(psutil.RLIMIT_NOFILE) == (LIMITS.open_files, LIMITS.open_files)
        assert process.rlimit(psutil.RLIMIT_FSIZE) == (LIMITS.file_bytes, LIMITS.file_bytes)
        assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)


def test_a_closed_cell_has_no_process_left(sandbox: ProcessSandbox) -> None:
    cell = sandbox.start(Launch(f"{LEARNERS}/acts.py:Acts", LIMITS))
    pid = cell._process.pid
    cell.pause()
    cell.close()
    assert not psutil.pid_exists(pid)


def test_descriptors_are_given_back(sandbox: ProcessSandbox) -> None:
    def round_trip() -> int:
        with Runtime("process", sandbox, f"{LEARNERS}/acts.py:Acts").cell():
            pass
        return psutil.Process().num_fds()

    first = round_trip()
    assert round_trip() == first
