"""Which trials a submission on a track consists of (GTEP, algorithms 1 and 2). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suite.data import scenario_seed
from suite.protocol import Point, Space
from suite.seeds import Counter, derive_seed
from suite.store.records import Phase, TrialKey
from suite.tracks import Track


@dataclass(frozen=True)
class TrialSpec:
    """One trial to run: its key, and what follows from it."""

    key: TrialKey
    draw: int | None
    """Tuning draw it belongs to; None in the evaluation phase."""
    scenario_seed: int
    """Class order and splits: of track, phase, data set and seed index only."""
    learner_seed: int

    @property
    def title(self) -> str:
        """What a user reads while it runs."""
        draw = "" if self.draw is None else f" draw {self.draw + 1}"
        return f"{self.key.phase} {self.key.data_set}{draw} seed {self.key.seed_index + 1}"


def draw_points(track: Track, space: Space) -> list[Point]:
    """The R points of the tuning phase: the same for every submission that declares the same space.

    Points that come up twice are kept: R is the number of draws, not of different points (algorithm 2, line 2).
    """
    replaced = space.replaced(track.space)
    return [replaced.draw(Counter(derive_seed(track.name, "draw", r)).unit) for r in range(track.draws)]


def trial_spec(
    track: Track, fingerprint: str, phase: Phase, data_set: str, point: Point, seed_index: int, draw: int | None = None
) -> TrialSpec:
    """The trial of these axes, with the seeds that DESIGN 4 derives from them."""
    key = TrialKey(
        fingerprint=fingerprint,
        track=track.hash,
        phase=phase,
        data_set=data_set,
        hyperparameters=point,
        seed_index=seed_index,
    )
    return TrialSpec(
        key=key,
        draw=draw,
        scenario_seed=scenario_seed(track.name, phase, data_set, seed_index),
        # 53 bits: readers of JSON in other languages hold no more exactly
        learner_seed=derive_seed(track.name, phase, data_set, seed_index, "learner") >> 10,
    )


def tuning_trials(track: Track, fingerprint: str, points: Sequence[Point]) -> list[TrialSpec]:
    """R x S trials on the tuning set. Draws that share a point share its trials' keys, hence are run once."""
    return [
        trial_spec(track, fingerprint, "tuning", track.tuning.data_set, point, s, draw)
        for draw, point in enumerate(points)
        for s in range(track.seeds)
    ]


def evaluation_trials(track: Track, fingerprint: str, point: Point) -> list[TrialSpec]:
    """S trials on each evaluation set with the selected hyperparameters, unchanged (algorithm 1)."""
    return [
        trial_spec(track, fingerprint, "evaluation", part.data_set, point, s)
        for part in track.evaluation
        for s in range(track.seeds)
    ]
