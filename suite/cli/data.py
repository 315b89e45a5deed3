"""`suite data`: list, prepare, verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.cli.options import DataRoot, Json
from suite.cli.output import print_json, print_table

app = typer.Typer(no_args_is_help=True, help="Data sets: what there is, preparing it, checking it.")


@app.command("list")
def list_data_sets(data: DataRoot = None, json: Json = False) -> None:
    """List the data sets that are known, and which of them are prepared."""
    from dataclasses import asdict

    from suite.data import data_root, registry

    root = data_root(data)
    infos = [registry.describe(name, root) for name in registry.names()]
    if json:
        print_json([asdict(info) for info in infos])
        return
    print_table(
        ["data set", "kind", "classes", "prepared", "licence", "source"],
        ((i.name, i.kind, i.classes or "", "yes" if i.prepared else "", i.licence, i.source) for i in infos),
    )


@app.command()
def prepare(
    names: Annotated[list[str], typer.Argument(help="Data sets to prepare.")],
    source: Annotated[
        Path | None, typer.Option("--from", help="Archive or folder that holds it, where it must be fetched by hand.")
    ] = None,
    data: DataRoot = None,
) -> None:
    """Bring data sets into the form that trials read; nothing is done twice."""
    from suite.data import data_root, registry
    from suite.errors import UsageError

    if source is not None and len(names) > 1:
        raise UsageError("--from goes with one data set.", "Prepare them one by one.")
    for name in names:
        data_set = registry.prepare(name, data_root(data), source)
        typer.echo(f"{name}: {len(data_set)} classes, sha256 {data_set.sha256[:16]}")


@app.command()
def verify(
    names: Annotated[list[str], typer.Argument(help="Data sets to verify.")],
    data: DataRoot = None,
) -> None:
    """Compare prepared data sets with their manifests, byte for byte."""
    from suite.data import data_root, registry

    for name in names:
        registry.verify(name, data_root(data))
        typer.echo(f"{name}: as its manifest says")
