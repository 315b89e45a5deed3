"""`suite track`: list, show, schema."""

from __future__ import annotations

from typing import Annotated

import typer

from suite.cli.options import Json
from suite.cli.output import print_json, print_table

app = typer.Typer(no_args_is_help=True, help="Tracks: what is tuned and evaluated on what.")


@app.command("list")
def list_tracks(json: Json = False) -> None:
    """List the shipped tracks."""
    from suite.tracks import load_track, track_names

    tracks = [load_track(name) for name in track_names()]
    if json:
        print_json([{**t.model_dump(mode="json"), "hash": t.hash} for t in tracks])
        return
    print_table(
        ["track", "tuning", "evaluation", "scenario", "R", "S", "reduced"],
        (
            (
                t.name,
                t.tuning.data_set,
                ", ".join(f"{e.data_set} ({e.similarity})" for e in t.evaluation),
                t.scenario,
                t.draws,
                t.seeds,
                "yes" if t.is_reduced else "",
            )
            for t in tracks
        ),
    )


@app.command()
def show(name: Annotated[str, typer.Argument(help="Name, or path of a TOML file.")]) -> None:
    """Print a track with all its values, and its hash."""
    from suite.tracks import load_track

    track = load_track(name)
    print_json({**track.model_dump(mode="json"), "hash": track.hash})


@app.command()
def schema() -> None:
    """Print the JSON Schema of a track file."""
    from suite.tracks import Track

    print_json(Track.model_json_schema())
