"""Sequence files: a task sequence with all that is needed to check it, learn it, and see how it was found."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from suite.errors import StoreError, UsageError
from suite.metrics import AccuracyCounts
from suite.seeds import content_hash
from suite.sequences.environment import SearchLearner
from suite.sequences.generation import Candidate, Look, Outcome
from suite.sequences.pool import Pool
from suite.sequences.settings import SearchSettings

MAX_FILE_BYTES = 64 * 2**20


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PoolRecord(_Record):
    """The pool that a sequence is drawn from."""

    name: str
    version: int
    hash: str = Field(description="content hash of its classes")


class LearnerRecord(_Record):
    """A learner that took part in the search; results of it on this sequence are marked."""

    name: str
    fingerprint: str
    hyperparameters: dict[str, Any]
    isolation: Literal["none", "strict"] = Field(default="none", description="how it ran during the search")
    correct: list[list[int]] = Field(description="lower triangle: correct held-out items after each task")
    total: list[list[int]] = Field(description="lower triangle: held-out items")


class LookRecord(_Record):
    """A task that was learned to see what it does."""

    classes: list[str]
    reward: float = Field(description="AFM - ALA after it, as a fraction, mean over learners")
    learner_rewards: list[float] = Field(description="the same for each learner, in their order")
    ahead: list[LookRecord] = Field(description="what was learned after it")


class CandidateRecord(_Record):
    """A candidate of a step."""

    classes: list[str]
    carried: bool = Field(description="scored as look-ahead of the step before")
    value: float | None = Field(description="Q of eq. 6; null when it was not evaluated in full")
    look: LookRecord | None = Field(description="null when it was not learned")


class StepRecord(_Record):
    """The candidates of a step, and which was taken."""

    candidates: list[CandidateRecord]
    chosen: int = Field(ge=0)


class CostRecord(_Record):
    """What the search cost, in learn calls."""

    learn_calls: int
    naive_learn_calls: int = Field(description="if each path had been learned from its first task on")
    peak_states: int


class SequenceFile(_Record):
    """A task sequence and its search history. Classes are named `dataset/class`."""

    format: Literal[1] = 1
    pool: PoolRecord
    seed: int
    settings: SearchSettings
    learners: list[LearnerRecord]
    reward_split: Literal["validation", "test"] = Field(description="split that rewards were measured on; never both")
    tasks: list[list[str]]
    steps: list[StepRecord]
    cost: CostRecord
    versions: dict[str, str] = Field(description="of suite, Python and the libraries that the search used")
    digest: str = Field(description="sha256 of the canonical JSON of all the rest")

    @property
    def computed_digest(self) -> str:
        """What `digest` should be."""
        return content_hash(self.model_dump(mode="json", exclude={"digest"}))


def sequence_file(
    outcome: Outcome,
    pool: Pool,
    learners: Sequence[SearchLearner],
    settings: SearchSettings,
    seed: int,
    *,
    versions: Mapping[str, str],
    reward_split: Literal["validation", "test"] = "validation",
    isolation: Literal["none", "strict"] = "none",
) -> SequenceFile:
    """The file of a finished search."""
    keys = [each.key for each in pool.classes]
    draft = SequenceFile(
        pool=PoolRecord(name=pool.name, version=pool.version, hash=pool.hash),
        seed=seed,
        settings=settings,
        learners=[
            _learner(learner, counts, isolation) for learner, counts in zip(learners, outcome.counts, strict=False)
        ],
        reward_split=reward_split,
        tasks=[_names(task, keys) for task in outcome.path],
        steps=[
            StepRecord(candidates=[_candidate(each, keys) for each in step.candidates], chosen=step.chosen)
            for step in outcome.steps
        ],
        cost=CostRecord(
            learn_calls=outcome.ledger.learn_calls,
            naive_learn_calls=outcome.ledger.naive_learn_calls,
            peak_states=outcome.ledger.peak_states,
        ),
        versions=dict(sorted(versions.items())),
        digest="",
    )
    return draft.model_copy(update={"digest": draft.computed_digest})


def save_sequence(file: SequenceFile, path: FilePath) -> None:
    """Write the file whole or not at all. StoreError when the disk refuses."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(file.model_dump_json(indent=1) + "\n")
        FilePath(part).replace(path)
    except OSError as error:
        message = f"The sequence file {path} cannot be written: {error.strerror}."
        raise StoreError(message, "Free space or choose another place.") from error


def load_sequence(path: FilePath) -> SequenceFile:
    """Read a sequence file. UsageError when it is absent, too large or malformed; what it says is for `verify`."""
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"The sequence file {path} cannot be read: {error.strerror}.", "Check its name.") from error
    if len(text) > MAX_FILE_BYTES:
        raise UsageError(f"{path} is larger than {MAX_FILE_BYTES} bytes.", "It is no sequence file.")
    try:
        return SequenceFile.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"{path} is no sequence file: {where or 'the file'}: {first['msg']}."
        raise UsageError(message, "Get it again, or search again.") from None


def sequence_schema() -> dict[str, Any]:
    """JSON Schema of sequence files."""
    return SequenceFile.model_json_schema()


def _names(task: Iterable[int], keys: Sequence[str]) -> list[str]:
    return [keys[label] for label in task]


def _learner(learner: SearchLearner, counts: AccuracyCounts, isolation: Literal["none", "strict"]) -> LearnerRecord:
    correct, total = counts.rows()
    return LearnerRecord(
        name=learner.name,
        fingerprint=learner.fingerprint,
        hyperparameters=learner.hyperparameters,
        isolation=isolation,
        correct=correct,
        total=total,
    )


def _candidate(candidate: Candidate, keys: Sequence[str]) -> CandidateRecord:
    return CandidateRecord(
        classes=_names(candidate.task, keys),
        carried=candidate.carried,
        value=candidate.value,
        look=None if candidate.look is None else _look(candidate.look, keys),
    )


def _look(look: Look, keys: Sequence[str]) -> LookRecord:
    return LookRecord(
        classes=_names(look.task, keys),
        reward=look.reward,
        learner_rewards=look.learner_rewards,
        ahead=[_look(each, keys) for each in look.ahead],
    )
