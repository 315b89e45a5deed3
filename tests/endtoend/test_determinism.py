"""Same image, processor, thread count and requests: the same counts, however the trial is run (DESIGN 4)."""

from __future__ import annotations

import signal

import pytest
from runs import NCM_CLASS, NCM_IMAGE, REPLAY_IMAGE, Runs  # type: ignore[import-not-found]

pytestmark = [pytest.mark.docker]


def interrupted(runs: Runs, image: str, results: str) -> None:
    """Submit, stop after the first finished task, and continue to the end."""
    process = runs.start(image, results)
    assert process.stderr is not None
    for line in process.stderr:
        if "learned in" in line:
            process.send_signal(signal.SIGINT)
            break
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert "resumed after task" in runs.submit(image, results)


def test_ncm_counts_the_same_strict_resumed_and_as_a_plain_process(runs: Runs) -> None:
    runs.submit(NCM_IMAGE, "first")
    runs.submit(NCM_IMAGE, "second")
    interrupted(runs, NCM_IMAGE, "resumed")
    runs.submit(NCM_CLASS, "process", "--sandbox", "process")
    first = runs.counts("first")
    assert len(first) == 2
    assert runs.counts("second") == first
    assert runs.counts("resumed") == first
    assert runs.counts("process") == first


@pytest.mark.slow
def test_replay_counts_the_same_strict_resumed_and_as_a_plain_process(runs: Runs) -> None:
    runs.submit(REPLAY_IMAGE, "first")
    interrupted(runs, REPLAY_IMAGE, "resumed")
    runs.submit("reference.methods.replay:Replay", "process", "--sandbox", "process")
    first = runs.counts("first")
    assert len(first) == 2
    assert runs.counts("resumed") == first
    assert runs.counts("process") == first
