"""What is persisted: every record of the journal, and the rows of the database made from them (DESIGN 4)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from suite.protocol import Manifest, Point
from suite.seeds import content_hash
from suite.status import Status

Phase: TypeAlias = Literal["tuning", "evaluation"]
Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TrialKey(_Record):
    """The unit of scheduling, storage and resumption: equal keys, the same trial."""

    fingerprint: str
    track: str
    """Hash of the track."""
    phase: Phase
    data_set: str
    hyperparameters: Point
    seed_index: int

    @property
    def id(self) -> str:
        """sha256 of the key: names the trial everywhere."""
        return content_hash(self.model_dump(mode="json"))


class Resources(_Record):
    """What one call cost, seen from the host; None where the sandbox cannot tell."""

    train_seconds: float = 0.0
    """`learn`, up to the learner's `post` mark."""
    post_seconds: float = 0.0
    """`learn`, from the `post` mark on; train + post is authoritative, the split as marked by the learner."""
    predict_seconds: float = 0.0
    setup_seconds: float = 0.0
    """Start, describe and setup of the learning cell; outside training time."""
    cpu_seconds: float | None = None
    peak_memory_bytes: int | None = None
    peak_gpu_bytes: int | None = None
    energy_joules: float | None = None


class TaskRecord(_Record):
    """One learned and tested task."""

    task: int
    classes: list[str]
    """Names of its classes, in order of arrival."""
    correct: list[int]
    """Per task tested so far (this one last): items predicted right."""
    total: list[int]
    """Per task tested so far: items."""
    resources: Resources
    state_bytes: int
    state_files: int
    state_elements: int
    state_hash: str
    stored_parameters: int
    trainable_parameters: int
    exemplars: int
    """Stored images, as declared."""
    memory_b4_bytes: int
    """CLDyB, appendix B.4: 4 bytes a parameter beyond the encoder, 224 x 224 x 3 a stored image."""
    agreement: float | None = None
    """After the last task: share of items whose prediction stayed the same in other company (G5)."""
    metrics: dict[str, float] = Field(default_factory=dict)
    """The learner's own, for display."""


class Attempt(_Record):
    """One try at a trial that did not end it: kept, counted, never scored."""

    trial: str
    number: int
    status: Status
    message: str
    log_tail: str = ""
    ended_at: datetime


class TrialRecord(_Record):
    """A trial that ended: scored, or failed with its kind."""

    key: TrialKey
    draw: int | None = None
    """Which tuning draw it belongs to; None in the evaluation phase."""
    status: Status
    message: str = ""
    log_tail: str = ""
    tasks: list[TaskRecord] = Field(default_factory=list)
    scenario_seed: int
    started_at: datetime
    ended_at: datetime
    attempts: int = 1
    is_exclusive: bool = False
    """Whether nothing else of the suite used the machine meanwhile: only such times are ranked."""

    @property
    def id(self) -> str:
        """The trial's id."""
        return self.key.id


class Machine(_Record):
    """Where a run took place."""

    cpu: str = ""
    cpus: int = 0
    memory_bytes: int = 0
    gpu: str = ""
    driver: str = ""
    kernel: str = ""
    engine: str = ""


class RunLock(_Record):
    """The inputs of a run: it is continued only when they are equal."""

    submission: str
    """Slug of the submission."""
    image: str
    fingerprint: str
    manifest: Manifest
    track: str
    """Name of the track."""
    track_hash: str
    track_snapshot: str
    """Canonical JSON of the track, so that a result explains itself."""
    data_hashes: dict[str, str]
    """Content of every data set, and of pretrained weights (`weights:NAME`)."""
    suite_version: str
    protocol: str
    isolation: str
    device: Literal["cpu", "cuda"]
    hyperparameters: Point | None = None
    """Given by the user instead of tuned: marked, never ranked."""

    @property
    def unranked_because(self) -> list[str]:
        """Reasons, known before it starts, for which a run is shown but never ranked."""
        reasons = {
            "hyperparameters were given, not tuned": self.hyperparameters is not None,
            f"it was granted a privilege ({', '.join(self.manifest.privileges)})": bool(self.manifest.privileges),
            "it ran without isolation": self.isolation == "none",
        }
        return [reason for reason, holds in reasons.items() if holds]

    @property
    def id(self) -> str:
        """Names the run's folder: a hash of everything here."""
        return content_hash(self.model_dump(mode="json"))[:16]


class RunInfo(_Record):
    """What is recorded of a run beside its inputs."""

    lock: RunLock
    machine: Machine
    versions: dict[str, str]
    argv: list[str]
    source_commit: str = ""
    is_dirty: bool = False
    started_at: datetime


class Selection(_Record):
    """The outcome of tuning (GTEP, algorithm 2, line 10), or why there is none."""

    draw: int | None
    hyperparameters: Point | None
    score: float | None
    """Harmonic mean of seed-mean Acc and seed-mean AvgAcc."""
    worst_draw: int | None = None
    """The eligible draw with the lowest score, for the audit."""
    eligible_draws: int
    draws: int
    failure: Status | None = None
    """Kind of the failure when no draw is eligible."""


class Entry(_Record):
    """One leaderboard entry: a submission on a track, complete or not."""

    run: str
    submission: str
    track: str
    is_complete: bool
    is_ranked: bool
    unranked_because: list[str] = Field(default_factory=list)
    selection: Selection | None = None
    data_sets: dict[str, Status]
    """Per evaluation set: ok, or the kind of the first failed seed."""
