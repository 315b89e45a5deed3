"""The author's path: `suite new`, `suite check`, `suite build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.cli.options import Json
from suite.cli.output import print_json


def new(
    name: Annotated[str, typer.Argument(help="Name of the learner, and of the folder to make.")],
    torch: Annotated[bool, typer.Option("--torch", help="Start from a PyTorch learner.")] = False,
) -> None:
    """Make a folder with a learner that runs, its Dockerfile and its submission manifest."""
    from suite.cli.scaffold import write_scaffold

    folder = write_scaffold(name, Path.cwd(), "torch" if torch else "numpy")
    typer.echo(f"{folder}: next `cd {folder.name}`, `suite check learner:Mine`, `suite build .`")


def check(
    target: Annotated[str, typer.Argument(help="module:Class, file.py:Class, or an image NAME:TAG.")],
    sandbox: Annotated[str | None, typer.Option("--sandbox", help="docker, gvisor or process; from TARGET.")] = None,
    backbone: Annotated[str | None, typer.Option("--backbone", help="Pretrained weights to mount, by name.")] = None,
    json: Json = False,
) -> None:
    """Try a learner on tiny tasks against everything that the protocol asks; exit code 5 if it falls short."""
    from suite.evaluation.conformance import check_learner, is_class_target

    kind = sandbox or ("process" if is_class_target(target) else "docker")
    findings = check_learner(target, kind, backbone)
    if json:
        print_json([{"check": f.check, "ok": f.ok, "message": f.message} for f in findings])
    else:
        for finding in findings:
            mark = "ok     " if finding.ok else "FAILED "
            typer.echo(f"{mark}{finding.check}" + (f": {finding.message}" if finding.message else ""))
    if not all(f.ok for f in findings):
        raise typer.Exit(5)


def build(
    folder: Annotated[Path, typer.Argument(help="Folder with a Dockerfile.")] = Path(),
    tag: Annotated[str | None, typer.Option("--tag", help="NAME:TAG of the image; from the folder's name.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Option("--build-arg", help="NAME=VALUE for the Dockerfile's ARG.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")] = False,
) -> None:
    """Build an image without network; the learner's manifest becomes its label."""
    from suite.evaluation.authoring import build_learner

    def on_line(line: str) -> None:
        if not quiet:
            typer.echo(line.rstrip(), err=True)

    built = build_learner(folder, tag, dict(a.partition("=")[::2] for a in arguments or []), on_line)
    typer.echo(f"{built.image[:19]}: learner {built.manifest.name}, fingerprint {built.fingerprint[:16]}")
