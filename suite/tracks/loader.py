"""Find and read tracks: the ones shipped, or a TOML file of the user's."""

from __future__ import annotations

import difflib
import tomllib
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from suite.errors import TrackError
from suite.tracks.model import Track


def track_names() -> list[str]:
    """Names of the shipped tracks, sorted."""
    folder = resources.files("suite.tracks") / "files"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def load_track(name: str) -> Track:
    """The track of this name, or in the file of this path. Raises TrackError with a remedy."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise TrackError(f"There is no track file {name!r}.", "Give the path of a TOML file, or a name.")
        try:
            return parse_track(path.read_text(encoding="utf-8"), name)
        except (OSError, UnicodeDecodeError) as error:
            raise TrackError(f"{name!r} cannot be read: {error}.", "Give the path of a TOML file.") from error
    if name not in track_names():
        close = difflib.get_close_matches(name, track_names(), n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        raise TrackError(f"There is no track {name!r}.", f"{hint}`suite track list` shows them all.")
    text = (resources.files("suite.tracks") / "files" / f"{name}.toml").read_text(encoding="utf-8")
    return parse_track(text, name)


def parse_track(text: str, source: str) -> Track:
    """A track from TOML text; `source` names it in errors."""
    try:
        return Track.model_validate(tomllib.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the track"
        raise TrackError(
            f"Track {source!r} is malformed: {where}: {first['msg']}.", "`suite track schema` prints the format."
        ) from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and what tomllib lets through
        raise TrackError(f"Track {source!r} is not TOML: {error}.", "Mend the line that it names.") from error
