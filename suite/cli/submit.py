"""`suite submit`: run a containerised learner through both phases of a track."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from suite.cli.options import DEFAULT_RESULTS, DEFAULT_SUBMISSIONS, DataRoot, Results, Submissions


def submit(
    image: Annotated[str, typer.Argument(help="Image (NAME:TAG), or module:Class with --sandbox process.")],
    track: Annotated[str, typer.Option("--track", "-t", help="Track name, or path of a TOML file.")],
    results: Results = DEFAULT_RESULTS,
    data: DataRoot = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Slug of the submission; by default from the image.")
    ] = None,
    sandbox: Annotated[str, typer.Option("--sandbox", help="docker, gvisor, or process (unranked).")] = "docker",
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    slots: Annotated[int, typer.Option("--slots", min=1, help="Trials at a time; times are ranked from one only.")] = 1,
    hyperparameters: Annotated[
        Path | None,
        typer.Option("--hyperparameters", help="TOML or JSON file: skip tuning. Marked, and never ranked."),
    ] = None,
    submissions: Submissions = DEFAULT_SUBMISSIONS,
    keep_states: Annotated[bool, typer.Option("--keep-states", help="Keep every state of every trial.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Plain lines even on a terminal.")] = False,
) -> None:
    """Tune, select and evaluate a learner on a track; the same command continues an interrupted run.

    Exit code 0: the entry is complete; 8: it reads failed (the reason is printed and stored); others: see the docs.
    """
    from suite.cli.display import display
    from suite.cli.signals import stop_on_sigint
    from suite.errors import EXIT_ENTRY_FAILED
    from suite.evaluation.submit import Request, submit_image
    from suite.store import Results as Store

    request = Request(
        image=image,
        track=track,
        results=results,
        data_root=data,
        submission=name,
        submissions=submissions,
        sandbox=sandbox,
        device=device,
        slots=slots,
        hyperparameters=hyperparameters,
        keep_states=keep_states,
        argv=tuple(sys.argv[1:]),
    )
    with stop_on_sigint() as stop, display(plain=plain) as show:
        entry = submit_image(request, show, stop)
    from suite.cli.results import print_ranking

    print_ranking(Store(results), entry.track)
    if not entry.is_complete:
        raise typer.Exit(EXIT_ENTRY_FAILED)
