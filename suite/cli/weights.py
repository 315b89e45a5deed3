"""`suite weights`: pretrained weights on the host; inside a container nothing is ever downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.cli.options import Json
from suite.cli.output import print_json, print_table

app = typer.Typer(no_args_is_help=True, help="Pretrained weights.")


@app.command("list")
def list_weights(json: Json = False) -> None:
    """List the weights that are known, shipped or stored."""
    from dataclasses import asdict

    from suite.weights import listed

    infos = listed()
    if json:
        print_json([asdict(info) for info in infos])
        return
    print_table(
        ["weights", "here", "parameters", "licence", "source", "remark"],
        (
            (
                i.name,
                "yes" if i.is_here else "",
                f"{i.parameters:,}" if i.parameters else "",
                i.licence,
                i.source,
                i.remark,
            )
            for i in infos
        ),
    )


@app.command()
def fetch(name: Annotated[str, typer.Argument(help="Name, as `suite weights list` shows it.")]) -> None:
    """Download known weights with timm, and store them as safetensors."""
    from suite.weights import fetch as fetch_weights

    weights = fetch_weights(name)
    typer.echo(f"{name}: sha256 {weights.manifest.sha256[:16]}")


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name to store them under.")],
    file: Annotated[Path, typer.Argument(help="A safetensors file.")],
    licence: Annotated[str | None, typer.Option("--licence", help="Its licence.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Where it comes from.")] = None,
) -> None:
    """Store weights that lie in a file."""
    from suite.weights import add as add_weights

    weights = add_weights(name, file, licence=licence, source=source)
    typer.echo(f"{name}: sha256 {weights.manifest.sha256[:16]}")


@app.command()
def verify(names: Annotated[list[str], typer.Argument(help="Weights to verify.")]) -> None:
    """Compare weights with their manifests, byte for byte."""
    from suite.weights import verify as verify_weights

    for name in names:
        verify_weights(name)
        typer.echo(f"{name}: as its manifest says")
