"""`suite site`: the static leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.cli.options import DEFAULT_RESULTS, DEFAULT_SUBMISSIONS, Results, Submissions

app = typer.Typer(no_args_is_help=True, help="The static leaderboard.")


@app.callback()
def _group() -> None:
    """The static leaderboard."""


@app.command()
def build(
    results: Results = DEFAULT_RESULTS,
    out: Annotated[Path, typer.Option("--out", help="Folder to write.")] = Path("build/site"),
    submissions: Submissions = DEFAULT_SUBMISSIONS,
) -> None:
    """Render the leaderboard from stored results; open the printed file in any browser."""
    from suite.site import build as build_site

    typer.echo(str(build_site(results, out, submissions)))
