"""What a track fixes: data, scenario, budgets, limits. Two submissions on one track differ in nothing else."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from suite.protocol import ExemplarBudget, FirstTask
from suite.protocol.space import Dimension, HyperparameterName
from suite.seeds import content_hash

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
DataSetName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/@:-]{0,99}$")]
Similarity: TypeAlias = Literal["same", "high", "low"]
ScenarioText = Annotated[str, Field(pattern=r"^\s*[0-9]{1,6}\s*(\+\s*[0-9]{1,6}\s*x\s*[0-9]{1,6}\s*)?$")]
Positive = Annotated[int, Field(gt=0)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
MIB = 1 << 20


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tuning(_Part):
    """Where hyperparameters are drawn and compared."""

    data_set: DataSetName
    scenario: ScenarioText | None = None
    """Overrides the track's scenario."""


class Evaluation(_Part):
    """One data set on which the selected hyperparameters are used unchanged."""

    data_set: DataSetName
    similarity: Similarity
    """How alike it is to the tuning set (GTEP, section 5)."""
    scenario: ScenarioText | None = None


class Budgets(_Part):
    """What a submission may use; wall clock is the host's."""

    task_seconds: Amount = 3600.0
    """For one `learn`."""
    trial_seconds: Amount = 36_000.0
    """For all `learn` and `predict` of a trial together."""
    predict_seconds: Amount = 1800.0
    setup_seconds: Amount = 120.0
    """For start, `describe` and `setup`, which training time does not contain."""
    state_bytes: Positive = 2048 * MIB
    scratch_bytes: Positive = 1024 * MIB
    memory_bytes: Positive = 8192 * MIB
    shm_bytes: Positive = 256 * MIB
    log_bytes: Positive = 64 * 1024
    cpus: Positive = 1
    pids: Positive = 256


class ExemplarRule(ExemplarBudget):
    """The protocol's budget as a track file writes it: what is misspelt is refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    total: Annotated[int, Field(ge=0)] | None = None
    per_class: Annotated[int, Field(ge=0)] | None = None


class FirstTaskRule(FirstTask):
    """The protocol's settings as a track file writes them: what is misspelt is refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    epochs: Positive
    lr: Amount
    milestones: list[Positive]
    lr_decay: Amount
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BackboneChoice(_Part):
    """Pretrained weights that every learner of the track starts from."""

    name: str
    remark: str = ""


def _overlap(a: str, b: str) -> bool:
    """Whether two names tell that they share classes: `letters-1:50` with `letters-1@64` and with `letters`."""
    first, second = (re.split("[@:]", name)[0] for name in (a, b))
    return first == second or first in {f"{second}-1", f"{second}-2"} or second in {f"{first}-1", f"{first}-2"}


class Track(_Part):
    """One leaderboard: ONE tuning set, its evaluation sets, a scenario, R draws and S seeds (GTEP, tables 1 and 2)."""

    name: Slug
    title: Annotated[str, Field(max_length=120)]
    summary: Annotated[str, Field(max_length=2000)]
    group: Literal["scratch", "pretrained"]
    is_reduced: bool = False
    """Fewer epochs, draws or seeds than the papers use: never comparable with published results."""
    scenario: ScenarioText
    """`base + increment x further tasks`, e.g. `5 + 5x9`."""
    draws: Positive = 30
    """R."""
    seeds: Positive = 5
    """S."""
    announces_tasks: bool = True
    """Whether learners are told the number of tasks and classes per task in advance."""
    tuning: Tuning
    evaluation: list[Evaluation] = Field(min_length=1)
    exemplars: ExemplarRule = Field(default_factory=ExemplarRule)
    first_task: FirstTaskRule | None = None
    space: dict[HyperparameterName, Dimension] = Field(default_factory=dict)
    """Ranges that replace a learner's own, by hyperparameter."""
    backbone: BackboneChoice | None = None
    budgets: Budgets = Field(default_factory=Budgets)
    agreement: float = Field(default=0.99, ge=0, le=1)
    """Least share of items predicted alike in other company (G5)."""

    @model_validator(mode="after")
    def _two_phases(self) -> Self:
        """Never evaluate on the tuning set itself; no evaluation set twice."""
        names = [e.data_set for e in self.evaluation]
        if len(set(names)) != len(names):
            raise ValueError("an evaluation set is named twice")
        if any(_overlap(self.tuning.data_set, name) for name in names):
            raise ValueError(f"{self.tuning.data_set} is used for tuning; evaluate on other data")
        if (self.group == "pretrained") != (self.backbone is not None):
            raise ValueError("a pretrained track names a backbone, and no other track does")
        if self.group == "pretrained" and self.first_task is not None:
            raise ValueError("only a track from scratch fixes the settings of the first task")
        return self

    @property
    def hash(self) -> str:
        """Content hash of all but the texts: results of different hashes are never compared."""
        return content_hash(
            self.model_dump(mode="json", exclude={"title": True, "summary": True, "backbone": {"remark"}})
        )

    @property
    def data_sets(self) -> list[str]:
        """Tuning set first."""
        return [self.tuning.data_set, *(e.data_set for e in self.evaluation)]

    def scenario_for(self, data_set: str) -> str:
        """The scenario that a data set of this track is used in."""
        own = {part.data_set: part.scenario for part in self.evaluation} | {self.tuning.data_set: self.tuning.scenario}
        return own[data_set] or self.scenario
