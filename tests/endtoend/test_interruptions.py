"""Killed, interrupted, or side by side with another: nothing is lost, and nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time

import pytest
from runs import NCM_IMAGE, Runs, left_behind  # type: ignore[import-not-found]

pytestmark = [pytest.mark.docker]

KILLS = 10


@pytest.mark.slow
def test_kill_9_at_ten_random_moments_changes_nothing(runs: Runs) -> None:
    runs.submit(NCM_IMAGE, "undisturbed")
    moments = random.Random(7)
    killed = 0
    for _ in range(KILLS):
        process = runs.start(NCM_IMAGE, "killed")
        try:
            process.communicate(timeout=moments.uniform(1.0, 6.0))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
            process.communicate()
    runs.submit(NCM_IMAGE, "killed")
    assert killed >= KILLS // 2
    ours, theirs = runs.export("killed"), runs.export("undisturbed")
    ours.pop("attempts.json", None), theirs.pop("attempts.json", None)
    assert ours == theirs
    assert not left_behind()


@pytest.mark.parametrize("times", [1, 2])
def test_sigint_stops_resumably_and_leaves_no_container(runs: Runs, times: int) -> None:
    process = runs.start(NCM_IMAGE, "stopped")
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if "learned in" in line:
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.05)
            break
    _, rest = process.communicate(timeout=120)
    assert process.returncode == 130, said + rest
    assert "Traceback" not in rest
    assert "The same command continues" in rest
    assert not left_behind()
    runs.submit(NCM_IMAGE, "stopped")


def test_two_submissions_at_once_do_not_disturb_each_other(runs: Runs) -> None:
    one, other = runs.start(NCM_IMAGE, "both", "--name", "one"), runs.start(NCM_IMAGE, "both", "--name", "other")
    endings = [process.communicate(timeout=250) for process in (one, other)]
    assert [one.returncode, other.returncode] == [0, 0], endings
    exported = runs.export("both")
    assert len(exported["runs.json"]) == 2
    counts = {r["run"]: 0 for r in exported["runs.json"]}
    for trial in exported["trials.json"]:
        assert trial["status"] == "ok"
        counts[trial["run"]] += 1
    assert set(counts.values()) == {2}
    assert not left_behind()


def test_results_are_readable_while_a_submission_runs(runs: Runs) -> None:
    process = runs.start(NCM_IMAGE, "watched")
    assert process.stderr is not None
    for line in process.stderr:
        if "Acc" in line and "AvgAcc" in line:  # a trial has ended: the database has been written once
            break
    assert process.poll() is None
    assert runs.export("watched")["trials.json"]
    process.communicate(timeout=200)
    assert process.returncode == 0
