"""Entries side by side: places, changes of place, margins over Replay (DESIGN 7). Pure.

Entries are compared only if they share the track's content hash and the suite's Major.Minor. Of the runs of one
submission the latest that may be ranked counts; the others are kept apart and stay visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suite.metrics import Summary, competition_ranks
from suite.store.summary import EntrySummary, SetSummary
from suite.store.track_view import TrackView

BASELINE = "replay"
"""Slug of the submission that margins are measured against: the paper's naive baseline."""


@dataclass(frozen=True)
class Margin:
    """Acc of an entry minus Acc of Replay, of the seed means; None where either has none."""

    tuning: float | None
    evaluation: dict[str, float | None]
    """By evaluation set."""


@dataclass(frozen=True)
class Standing:
    """An entry and its place."""

    summary: EntrySummary
    rank: int | None
    """By score over the evaluation sets; None for an entry that is not ranked. Equals share a place."""
    tuning_rank: int | None
    """By score on the tuning set, among the ranked entries."""
    set_ranks: dict[str, int | None]
    """By score on one evaluation set, among the ranked entries."""
    time_rank: int | None
    """By training and post-training time, shortest first.

    None unless its times are exclusive, and all that are were taken on the same hardware.
    """
    margin: Margin

    @property
    def rank_change(self) -> int | None:
        """Places won from tuning to evaluation; negative where it fell."""
        return None if self.rank is None or self.tuning_rank is None else self.tuning_rank - self.rank


@dataclass(frozen=True)
class Board:
    """One leaderboard: a track in one version."""

    track: TrackView
    track_hash: str
    version: str
    """Major.Minor of the suite."""
    standings: Sequence[Standing]
    """Ranked ones first, by place; then the others by name."""
    superseded: Sequence[EntrySummary]
    """Other runs of the same submissions, the latest first."""
    has_baseline: bool
    """Whether margins could be computed at all."""


def boards(entries: Sequence[EntrySummary]) -> list[Board]:
    """All boards, by track name; the one with the latest run first among the versions of a track."""
    groups: dict[tuple[str, str, str], list[EntrySummary]] = {}
    for entry in entries:
        lock = entry.info.lock
        groups.setdefault((lock.track, lock.track_hash, major_minor(lock.suite_version)), []).append(entry)
    made = sorted(groups.values(), key=lambda g: max(e.info.started_at for e in g), reverse=True)
    return sorted((_board(group) for group in made), key=lambda b: b.track.name)  # stable: keeps the latest first


def major_minor(version: str) -> str:
    """`1.4` of `1.4.2`: results compare within it."""
    return ".".join(version.split(".")[:2])


def _board(group: Sequence[EntrySummary]) -> Board:
    current, superseded = _latest(group)
    ranked = [e for e in current if not e.unranked_because]
    ranks = dict(zip((e.run for e in ranked), competition_ranks([e.score for e in ranked]), strict=True))
    tuning = competition_ranks([e.tuning.score if e.tuning else None for e in ranked])
    tuning_ranks = dict(zip((e.run for e in ranked), tuning, strict=True))
    set_ranks = _set_ranks(ranked)
    times = _time_ranks(ranked)
    baseline = next((e for e in current if e.info.lock.submission == BASELINE and e.tuning is not None), None)
    standings = [
        Standing(
            summary=entry,
            rank=ranks.get(entry.run),
            tuning_rank=tuning_ranks.get(entry.run),
            set_ranks={name: by_run.get(entry.run) for name, by_run in set_ranks.items()},
            time_rank=times.get(entry.run),
            margin=_margin(entry, baseline),
        )
        for entry in current
    ]
    first = current[0]
    return Board(
        track=first.track,
        track_hash=first.info.lock.track_hash,
        version=major_minor(first.info.lock.suite_version),
        standings=sorted(standings, key=lambda s: (s.rank is None, s.rank or 0, s.summary.info.lock.submission)),
        superseded=superseded,
        has_baseline=baseline is not None,
    )


def _latest(group: Sequence[EntrySummary]) -> tuple[list[EntrySummary], list[EntrySummary]]:
    """Per submission its latest run that may be ranked, else its latest; and the rest."""
    current: dict[str, EntrySummary] = {}
    superseded = []
    for entry in sorted(group, key=lambda e: (not e.unranked_because, e.info.started_at, e.run), reverse=True):
        if entry.info.lock.submission in current:
            superseded.append(entry)
        else:
            current[entry.info.lock.submission] = entry
    return list(current.values()), sorted(superseded, key=lambda e: e.info.started_at, reverse=True)


def _set_ranks(ranked: Sequence[EntrySummary]) -> dict[str, dict[str, int | None]]:
    names = [s.data_set for s in ranked[0].evaluation] if ranked else []
    return {
        name: dict(
            zip((e.run for e in ranked), competition_ranks([e.evaluation[i].score for e in ranked]), strict=True)
        )
        for i, name in enumerate(names)
    }


def _time_ranks(ranked: Sequence[EntrySummary]) -> dict[str, int | None]:
    timed = [e for e in ranked if e.is_exclusive and e.learn_seconds is not None]
    hardware = {(e.info.machine.cpu, e.info.machine.gpu, e.info.lock.device) for e in timed}
    if len(hardware) != 1:
        return {}
    places = competition_ranks([-(e.learn_seconds or 0.0) for e in timed])
    return dict(zip((e.run for e in timed), places, strict=True))


def _margin(entry: EntrySummary, baseline: EntrySummary | None) -> Margin:
    if baseline is None or baseline.run == entry.run:
        return Margin(None, {s.data_set: None for s in entry.evaluation})
    return Margin(
        tuning=_over(_acc(entry.tuning), _acc(baseline.tuning)),
        evaluation={
            ours.data_set: _over(ours.acc, theirs.acc)
            for ours, theirs in zip(entry.evaluation, baseline.evaluation, strict=True)
        },
    )


def _acc(result: SetSummary | None) -> Summary | None:
    return result.acc if result else None


def _over(ours: Summary | None, theirs: Summary | None) -> float | None:
    return ours.mean - theirs.mean if ours and theirs else None
