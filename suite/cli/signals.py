"""SIGINT once: finish the task and stop resumably. Twice: stop now."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from suite.errors import Interrupted
from suite.evaluation.bench import Stop


@contextmanager
def stop_on_sigint() -> Iterator[Stop]:
    """A Stop that the first SIGINT sets; the second ends the block with Interrupted, as SIGTERM does at once.

    Must be entered in the main thread. Clean-up runs either way: cells are closed by those that hold them.
    """
    asked = False

    def on_sigint(_signum: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # clean-up must not be cut short
            raise KeyboardInterrupt
        asked = True
        sys.stderr.write("\nsuite: finishing the task, then stopping; once more to stop now\n")

    def on_sigterm(_signum: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, on_sigint), signal.signal(signal.SIGTERM, on_sigterm)
    try:
        yield Stop(lambda: asked)
    except KeyboardInterrupt as stop:
        raise Interrupted(
            "Stopped in the midst of a task.", "The same command continues at the last finished one."
        ) from stop
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
