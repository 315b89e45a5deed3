"""Build the static site: read results, fill templates, write a folder that opens from disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from suite import __version__
from suite.errors import UsageError
from suite.site import figures
from suite.site.pages import (
    Contents,
    RunPage,
    SubmissionPage,
    TrackPage,
    run_page,
    submission_page,
    track_card,
    track_page,
)
from suite.site.table import Column, Entry, Table, shown, sort_key
from suite.site.text import MAX_LOG, clean, clean_log, file_name, visible
from suite.status import Status
from suite.store import Results, TrackView, boards, major_minor, summarise_run
from suite.store.export import csv_text, json_text
from suite.submissions import read_submissions
from suite.tracks import load_track, track_names

if TYPE_CHECKING:
    from jinja2 import Environment

MARK = ".continual-suite-site"
"""A folder with this file was written by `build`, and may be replaced by it."""


def build(results_dir: Path, out_dir: Path, submissions_dir: Path | None = None) -> Path:
    """Write the site for the results in `results_dir` to `out_dir`; returns its index file.

    Equal results give equal files. Raises StoreError if the results cannot be read, ManifestError if a submission's
    manifest is malformed, UsageError if `out_dir` holds something else than an earlier site.
    """
    contents = gather(results_dir, submissions_dir)
    try:
        if out_dir.exists() and any(out_dir.iterdir()) and not (out_dir / MARK).is_file():
            raise UsageError(f"{out_dir} holds something else than a site.", "Choose an empty folder with --out.")
        out_dir.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=out_dir.parent, prefix=f".{out_dir.name}-") as neighbour:
            fresh = Path(neighbour) / "site"
            fresh.mkdir()
            _Writer(contents, fresh).write()
            if out_dir.exists():
                out_dir.rename(Path(neighbour) / "before")
            fresh.rename(out_dir)
    except OSError as error:
        raise UsageError(f"{out_dir} cannot be written: {error.strerror}.", "Choose another with --out.") from error
    return out_dir / "index.html"


def gather(results_dir: Path, submissions_dir: Path | None = None) -> Contents:
    """All that the site shows, from the results' database brought up to their journals."""
    results = Results(results_dir)
    if os.access(results_dir, os.W_OK):
        results.refresh()
    made = boards([summarise_run(results.run(run)) for run in results.run_ids()])
    tracks = {b.track.name: b.track for b in reversed(made)}  # of several versions, the latest
    shipped = (TrackView.model_validate(load_track(name).model_dump()) for name in track_names())
    tracks |= {track.name: track for track in shipped if track.name not in tracks}
    return Contents(
        tracks=list(tracks.values()),
        boards=made,
        submissions=read_submissions(submissions_dir) if submissions_dir else {},
        version=__version__,
    )


class _Writer:
    """Writes the pages of one site into one folder."""

    def __init__(self, contents: Contents, folder: Path) -> None:
        self.contents = contents
        self.folder = folder
        self.environment = _environment()

    def write(self) -> None:
        self._static()
        cards = [track_card(self.contents, track) for track in self.contents.tracks]
        self._page("index.html", "index.html", cards=cards)
        for track in self.contents.tracks:
            self._track(track_page(self.contents, track))
        for entry in self.contents.entries:
            self._run(run_page(self.contents, entry))
        for slug in sorted({e.info.lock.submission for e in self.contents.entries} | set(self.contents.submissions)):
            self._submission(submission_page(self.contents, slug))
        (self.folder / MARK).write_text(f"{self.contents.version}\n", encoding="utf-8")

    def _track(self, page: TrackPage) -> None:
        name = file_name(page.track.name)
        self._downloads(f"track-{name}", [*page.tables, *page.older])
        self._page("track.html", f"tracks/{name}.html", page=page, data=f"track-{name}")

    def _run(self, page: RunPage) -> None:
        name = file_name(page.entry.run)
        self._downloads(f"run-{name}", page.tables)
        self._page("run.html", f"runs/{name}.html", page=page, data=f"run-{name}")

    def _submission(self, page: SubmissionPage) -> None:
        name = file_name(page.slug)
        self._downloads(f"submission-{name}", [page.runs])
        self._page("submission.html", f"submissions/{name}.html", page=page, data=f"submission-{name}")

    def _page(self, template: str, path: str, **values: Any) -> None:
        text = self.environment.get_template(template).render(
            contents=self.contents,
            root="../" * path.count("/"),
            version=major_minor(self.contents.version),
            **values,
        )
        self._file(path, visible(text))  # again: filters such as join hand text on that _finalize does not see

    def _downloads(self, prefix: str, tables: Iterable[Table]) -> None:
        for table in tables:
            header, rows = table.flat()
            self._file(f"data/{prefix}-{table.id}.csv", csv_text(header, rows))
            self._file(
                f"data/{prefix}-{table.id}.json", json_text([dict(zip(header, row, strict=True)) for row in rows])
            )

    def _static(self) -> None:
        for file in sorted((resources.files("suite.site") / "static").iterdir(), key=lambda f: f.name):
            self._file(f"static/{file.name}", file.read_text(encoding="utf-8"))

    def _file(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")


def _environment() -> Environment:
    """Templates with every value escaped, every foreign text cleaned, and every misspelt name an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("suite.site"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    names = ("percent", "points", "mean_std", "seconds", "byte_count", "count", "place", "change", "moment", "day")
    environment.filters |= {name: getattr(figures, name) for name in names}
    environment.filters |= {"log": clean_log, "cell": _cell, "sort_key": _sort_key, "file": file_name}
    environment.tests |= {"a_status": lambda v: isinstance(v, Status), "an_entry": lambda v: isinstance(v, Entry)}
    return environment


def _finalize(value: Any) -> Any:
    if value is None:
        return figures.NONE
    return clean(value, MAX_LOG) if isinstance(value, str) and not isinstance(value, Markup) else value


def _cell(value: Any, column: Column) -> str:
    return shown(column, value)


def _sort_key(value: Any, column: Column) -> str:
    return sort_key(column, value)
