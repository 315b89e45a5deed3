"""The command tree."""

from __future__ import annotations

from typing import Annotated

import typer

from suite.cli import author, data, doctor, protocol, results, site, submit, track, weights

app = typer.Typer(
    name="suite",
    help="A containerised benchmark suite for continual learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from suite import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """A containerised benchmark suite for continual learning."""


app.command("submit")(submit.submit)
app.command("new")(author.new)
app.command("check")(author.check)
app.command("build")(author.build)
app.command("doctor")(doctor.doctor)
app.add_typer(data.app, name="data")
app.add_typer(track.app, name="track")
app.add_typer(results.app, name="results")
app.add_typer(site.app, name="site")
app.add_typer(protocol.app, name="protocol")
app.add_typer(weights.app, name="weights")
