"""What a stored result says of its track: the part of the snapshot that summaries and pages need."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from suite.errors import StoreError
from suite.protocol.space import Dimension


class _View(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class TuningView(_View):
    """Where hyperparameters were drawn and compared."""

    data_set: str
    scenario: str | None = None


class EvaluationView(_View):
    """Where the selected ones were used."""

    data_set: str
    similarity: str = ""
    scenario: str | None = None


class TrackView(_View):
    """A track as it was when a run began; fields that later versions add are passed over."""

    name: str
    title: str = ""
    summary: str = ""
    group: str = ""
    is_reduced: bool = False
    scenario: str = ""
    draws: int = Field(ge=1)
    seeds: int = Field(ge=1)
    space: dict[str, Dimension] = Field(default_factory=dict)
    """Ranges that the track sets in place of a learner's own."""
    tuning: TuningView
    evaluation: list[EvaluationView] = Field(min_length=1)

    def similarity(self, data_set: str) -> str:
        """How alike an evaluation set is to the tuning set; '' if the track does not say."""
        return next((e.similarity for e in self.evaluation if e.data_set == data_set), "")


def track_view(snapshot: str) -> TrackView:
    """The view of a snapshot (JSON). Raises StoreError if it is no track."""
    try:
        return TrackView.model_validate_json(snapshot)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the snapshot"
        raise StoreError(
            f"A run's snapshot of its track is malformed: {where}: {first['msg']}.",
            "The run was recorded by another program; remove its folder from the results.",
        ) from error
