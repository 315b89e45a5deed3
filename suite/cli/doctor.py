"""`suite doctor`: what works on this machine."""

from __future__ import annotations

import typer

from suite.cli.options import DEFAULT_RESULTS, DataRoot, Json, Results
from suite.cli.output import print_json, print_table


def doctor(results: Results = DEFAULT_RESULTS, data: DataRoot = None, json: Json = False) -> None:
    """Check engine, GPU, disk, memory, images and data; exit code 6 if there is a problem."""
    from rich.text import Text

    from suite.evaluation.doctor import examine

    lines = list(examine(results, data))
    if json:
        print_json([{"subject": x.subject, "level": x.level, "text": x.text, "remedy": x.remedy} for x in lines])
    else:
        styles = {"ok": "green", "warning": "yellow", "problem": "red"}
        rows = [(Text(x.level, style=styles[x.level]), x.subject, x.text, x.remedy) for x in lines]
        print_table(["", "what", "found", "remedy"], rows)
    if any(x.level == "problem" for x in lines):
        raise typer.Exit(6)
