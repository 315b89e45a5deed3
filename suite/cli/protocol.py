"""`suite protocol`: the published interface."""

from __future__ import annotations

import typer

from suite.cli.output import print_json

app = typer.Typer(no_args_is_help=True, help="The learner protocol.")


@app.callback()
def _group() -> None:
    """The learner protocol."""


@app.command()
def schema() -> None:
    """Print the JSON Schema of every message, for learners in any language."""
    from suite.protocol.schema import protocol_schema

    print_json(protocol_schema())
