"""Progress of a submission: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from suite.cli.progress import Progress, event_line
from suite.evaluation.events import Epoch, Event, Report


@contextmanager
def display(*, plain: bool) -> Iterator[Report]:
    """A receiver of events that shows them on stderr."""
    console = Console(stderr=True, highlight=False)
    if plain or not console.is_terminal:
        yield _plain
        return
    progress = Progress()
    with Live(console=console, get_renderable=lambda: _panel(progress), refresh_per_second=4, transient=True) as live:

        def show(event: Event) -> None:
            progress.see(event, time.monotonic())
            if line := event_line(event):
                live.console.print(Text(line))

        yield show


def _plain(event: Event) -> None:
    if not isinstance(event, Epoch) and (line := event_line(event)):
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
        sys.stderr.flush()


def _panel(progress: Progress) -> Table:
    left = progress.seconds_left(time.monotonic())
    grid = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=max(progress.total, 1), completed=progress.completed, width=60)
    grid.add_row(Text("done", style="dim"), bar)
    for label, value in progress.facts():
        grid.add_row(Text(label, style="dim"), Text(value))
    if left is not None:
        grid.add_row(Text("time left", style="dim"), Text(f"about {_duration(left)}"))
    return grid


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
