"""What each page shows, gathered from results and manifests; templates only lay it out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from suite.site import entry_tables, figures, track_tables
from suite.site.charts import MOST_LINES, Chart, accuracy_curves, phase_dots
from suite.site.entry_tables import FailedTrial, HeatMap
from suite.site.table import Badge, Column, Entry, Table
from suite.site.text import clean, file_name, https_only
from suite.store import Board, EntrySummary, SetSummary, Standing, TrackView
from suite.submissions import Submission


@dataclass(frozen=True)
class Contents:
    """All that the site shows."""

    tracks: Sequence[TrackView]
    """In the order of the index; those with results first."""
    boards: Sequence[Board]
    submissions: Mapping[str, Submission]
    version: str
    """Of the suite that builds the site."""

    @property
    def entries(self) -> list[EntrySummary]:
        """Every run, whether it counts or not."""
        return [e for b in self.boards for e in (*(s.summary for s in b.standings), *b.superseded)]

    @property
    def updated(self) -> datetime | None:
        """When the latest run began; the site has no other date, so that equal results give equal pages."""
        return max((e.info.started_at for e in self.entries), default=None)

    @cached_property
    def standings(self) -> dict[str, tuple[Board, Standing]]:
        """By run: its place, and on which board."""
        return {s.summary.run: (b, s) for b in self.boards for s in b.standings}

    def title(self, slug: str) -> str:
        """What a submission is called."""
        return self.submissions[slug].title if slug in self.submissions else clean(slug, 80)

    def link(self, entry: EntrySummary) -> Entry:
        """The cell that names a run, linking to its page."""
        slug = entry.info.lock.submission
        kind = self.submissions[slug].kind if slug in self.submissions else ""
        badges = [Badge(kind, "blue", f"kind of submission: {kind}")] if kind not in {"", "external"} else []
        return Entry(
            self.title(slug), f"../runs/{file_name(entry.run)}.html", (*badges, *track_tables.reason_badges(entry))
        )

    def boards_of(self, track: str) -> list[Board]:
        """The boards of a track, the latest version first."""
        return [b for b in self.boards if b.track.name == track]


@dataclass(frozen=True)
class TrackCard:
    """A track on the index."""

    track: TrackView
    href: str
    board: Board | None
    leaders: Sequence[tuple[int, Entry, float | None]]
    """Place, entry and score of the first three."""
    not_ranked: int


def track_card(contents: Contents, track: TrackView) -> TrackCard:
    """A track with its leaders."""
    board = next(iter(contents.boards_of(track.name)), None)
    ranked = [s for s in board.standings if s.rank is not None] if board else []
    return TrackCard(
        track=track,
        href=f"tracks/{file_name(track.name)}.html",
        board=board,
        leaders=[(s.rank or 0, _from_index(contents.link(s.summary)), s.summary.score) for s in ranked[:3]],
        not_ranked=len(board.standings) - len(ranked) if board else 0,
    )


def _from_index(entry: Entry) -> Entry:
    return Entry(entry.text, entry.href.removeprefix("../"), entry.badges)


@dataclass(frozen=True)
class Figure:
    """A chart under a heading of its own."""

    title: str
    chart: Chart


@dataclass(frozen=True)
class TrackPage:
    """A track's page."""

    track: TrackView
    board: Board | None
    tables: Sequence[Table]
    dots: Chart | None
    curves: Sequence[Figure]
    lines_left_out: int
    older: Sequence[Table]
    reasons: Sequence[tuple[Entry, list[str]]]
    """Entries without a place, and why."""


def track_page(contents: Contents, track: TrackView) -> TrackPage:
    """All tables and charts of a track."""
    boards = contents.boards_of(track.name)
    if not boards:
        return TrackPage(track, None, (), None, (), 0, (), ())
    board, *others = boards
    older = [
        track_tables.other_runs(
            [s.summary for s in b.standings] + list(b.superseded),
            contents.link,
            f"Made with another version of the track or the suite ({b.version}, {b.track_hash[:8]}): not comparable",
            f"version-{number}",
        )
        for number, b in enumerate(others, start=1)
    ]
    if board.superseded:
        caption = "Other runs of the same submissions"
        older.insert(0, track_tables.other_runs(board.superseded, contents.link, caption, "superseded"))
    tables = [f(board, contents.link) for f in (track_tables.ranking, track_tables.phases, track_tables.cost)]
    return TrackPage(
        track=track,
        board=board,
        tables=tables,
        dots=phase_dots(board, contents.title),
        curves=_curves(contents, board),
        lines_left_out=max(0, len(board.standings) - MOST_LINES),
        older=older,
        reasons=[
            (contents.link(s.summary), s.summary.unranked_because)
            for s in board.standings
            if s.summary.unranked_because
        ],
    )


def _curves(contents: Contents, board: Board) -> list[Figure]:
    found = []
    for i, part in enumerate(board.track.evaluation):
        lines = [(contents.title(s.summary.info.lock.submission), s.summary.evaluation[i]) for s in board.standings]
        chart = accuracy_curves(lines, f"Acc on {clean(part.data_set)} after each task, mean and standard deviation.")
        if chart:
            found.append(Figure(part.data_set, chart))
    return found


@dataclass(frozen=True)
class SetPart:
    """An evaluation set on a run's page."""

    result: SetSummary
    similarity: str
    heat: HeatMap | None
    seeds: Table
    tasks: Table
    spread: tuple[float | None, float | None]


@dataclass(frozen=True)
class RunPage:
    """A run's page."""

    entry: EntrySummary
    standing: Standing | None
    title: str
    track_href: str
    submission_href: str
    curve: Chart | None
    parts: Sequence[SetPart]
    hyperparameters: Table
    draws: Table | None
    failures: Sequence[FailedTrial]
    provenance: Sequence[tuple[str, str]]
    command: str

    @property
    def tables(self) -> list[Table]:
        """Every table of the page."""
        parts = [table for part in self.parts for table in (part.seeds, part.tasks)]
        return [self.hyperparameters, *([self.draws] if self.draws else []), *parts]


def run_page(contents: Contents, entry: EntrySummary) -> RunPage:
    """All that is known of one run."""
    _, standing = contents.standings.get(entry.run, (None, None))
    slug = entry.info.lock.submission
    lines = [(result.data_set, result) for result in entry.evaluation]
    return RunPage(
        entry=entry,
        standing=standing,
        title=contents.title(slug),
        track_href=f"../tracks/{file_name(entry.track.name)}.html",
        submission_href=f"../submissions/{file_name(slug)}.html",
        curve=accuracy_curves(lines, "Acc on all classes so far, after each task; mean and standard deviation."),
        parts=[_part(entry, result) for result in entry.evaluation],
        hyperparameters=entry_tables.hyperparameters(entry),
        draws=entry_tables.draws(entry) if entry.draws else None,
        failures=entry_tables.failures(entry),
        provenance=_provenance(entry),
        command=_command(entry),
    )


def _part(entry: EntrySummary, result: SetSummary) -> SetPart:
    return SetPart(
        result=result,
        similarity=entry.track.similarity(result.data_set),
        heat=entry_tables.heat_map(result),
        seeds=entry_tables.seeds(result),
        tasks=entry_tables.tasks(result),
        spread=entry_tables.spread(result),
    )


def _provenance(entry: EntrySummary) -> list[tuple[str, str]]:
    info, lock, machine = entry.info, entry.info.lock, entry.info.machine
    commit = f"{info.source_commit}{' with uncommitted changes' if info.is_dirty else ''}"
    rows = [
        ("Run", entry.run),
        ("Began", figures.moment(info.started_at)),
        ("Image", lock.image),
        ("Image fingerprint", lock.fingerprint),
        ("Learner", f"{lock.manifest.name} {lock.manifest.version}"),
        ("Isolation", lock.isolation),
        ("Device", lock.device),
        ("CPU", f"{machine.cpu} ({machine.cpus} usable)" if machine.cpu else ""),
        ("Memory", figures.byte_count(machine.memory_bytes) if machine.memory_bytes else ""),
        ("GPU", ", ".join(filter(None, [machine.gpu, machine.driver and f"driver {machine.driver}"]))),
        ("Kernel", machine.kernel),
        ("Engine", machine.engine),
        ("Suite", f"{lock.suite_version}, protocol {lock.protocol}"),
        ("Source", commit),
        ("Track hash", lock.track_hash),
        *((f"Data: {name}", digest) for name, digest in lock.data_hashes.items()),
        ("Versions", ", ".join(f"{name} {version}" for name, version in info.versions.items())),
        ("Attempts cut short", str(entry.attempts)),
    ]
    return [(name, value) for name, value in rows if value]


def _command(entry: EntrySummary) -> str:
    lock = entry.info.lock
    words = ["suite", "submit", lock.image, "--track", lock.track]
    if lock.hyperparameters is not None:
        words += ["--hyperparameters", "hyperparameters.toml"]
    if lock.isolation == "none":
        words += ["--sandbox", "process"]
    return shlex.join(words)


@dataclass(frozen=True)
class SubmissionPage:
    """A submission's page: who made it, and its runs."""

    slug: str
    title: str
    submission: Submission | None
    description: str
    source: str | None
    """Address that may be linked to."""
    runs: Table
    links: Sequence[tuple[str, str]] = field(default=())


def submission_page(contents: Contents, slug: str) -> SubmissionPage:
    """A submission, whether a manifest is there or not."""
    entries = [e for e in contents.entries if e.info.lock.submission == slug]
    manifest = contents.submissions.get(slug)
    latest = max(entries, key=lambda e: e.info.started_at, default=None)
    described = manifest.description if manifest else ""
    return SubmissionPage(
        slug=slug,
        title=contents.title(slug),
        submission=manifest,
        description=described or (latest.info.lock.manifest.description if latest else ""),
        source=https_only(manifest.source) if manifest else None,
        links=[("Paper", url)] if manifest and (url := https_only(manifest.paper_url)) else [],
        runs=_runs_table(contents, entries),
    )


def _runs_table(contents: Contents, entries: Sequence[EntrySummary]) -> Table:
    rows = []
    for entry in entries:
        _, standing = contents.standings.get(entry.run, (None, None))
        title = clean(entry.track.title or entry.track.name)
        rows.append(
            {
                "track": Entry(title, f"../runs/{file_name(entry.run)}.html", track_tables.reason_badges(entry)),
                "rank": standing.rank if standing else None,
                "score": entry.score,
                "status": entry.status,
                "began": figures.day(entry.info.started_at),
                "counts": standing is not None,
            }
        )
    return Table(
        id="runs",
        caption="Runs",
        columns=[
            Column("track", "Track", "entry"),
            Column("rank", "Place", "place"),
            Column("score", "Score", "percent", "in %"),
            Column("status", "Status", "status"),
            Column("began", "Began"),
            Column("counts", "Counts", "yes", "the latest run of a submission that may be ranked counts"),
        ],
        rows=rows,
    )
