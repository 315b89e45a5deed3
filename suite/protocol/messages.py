"""Every message of the learner protocol (DESIGN 5): JSON-RPC 2.0, one JSON object a line.

What the harness sends ignores unknown fields when read (so that an older learner understands a newer harness); what a
learner sends refuses them (so that nothing unread crosses). Paths are absolute, as the learner sees them. Class ids are
numbered per trial in order of arrival: 0 .. seen - 1.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
    model_validator,
)

from suite.protocol.limits import MAX_CLASSES, MAX_METRICS, MAX_NAME, MAX_TEXT
from suite.protocol.space import Point, Space
from suite.protocol.version import PROTOCOL_VERSION, Version

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._+-]*$", max_length=MAX_NAME)]
Text = Annotated[str, Field(max_length=MAX_TEXT)]
Path = Annotated[str, Field(max_length=4096)]
Count = Annotated[int, Field(ge=0, le=2**53, strict=True)]
ClassId = Annotated[int, Field(ge=0, lt=MAX_CLASSES)]
MetricName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_./-]*$", max_length=MAX_NAME)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Metrics = Annotated[dict[MetricName, Finite], Field(max_length=MAX_METRICS)]
Device: TypeAlias = Literal["cpu", "cuda"]
Stage: TypeAlias = Literal["train", "post"]
Privilege: TypeAlias = Literal["past_data"]


class _FromHarness(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _FromLearner(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# --- what a learner says of itself ------------------------------------------------------------------------------------


class Manifest(_FromLearner):
    """A learner's description of itself: the answer to `describe`, and the label of its image."""

    protocol: Version = PROTOCOL_VERSION
    name: Name
    version: Name = "1"
    description: Text = ""
    space: Space = Field(default_factory=Space)
    privileges: list[Privilege] = Field(default_factory=list, max_length=8)
    """What it asks for beyond the protocol; a learner with a privilege is shown but not ranked."""
    embeds: bool = False
    """Whether it answers `embed`."""
    has_classifier: bool = False
    """Whether it answers `classifier`."""


# --- parameters of the requests ---------------------------------------------------------------------------------------


class ImageShape(_FromHarness):
    """Shape of every image of the trial, in pixels and channels."""

    height: int
    width: int
    channels: int = 3


class Announcement(_FromHarness):
    """What the scenario lets a learner know in advance; None where it tells nothing."""

    tasks: int | None = None
    classes_per_task: list[int] | None = None


class ExemplarBudget(_FromHarness):
    """How many images of earlier tasks may be stored; None where that bound is not set."""

    total: int | None = None
    per_class: int | None = None


class FirstTask(_FromHarness):
    """Training settings of the first task, fixed for every from-scratch learner (GTEP, table 3)."""

    epochs: int
    lr: float
    milestones: list[int]
    lr_decay: float
    weight_decay: float


class Backbone(_FromHarness):
    """Pretrained weights: a timm model name and a safetensors file."""

    name: str
    path: Path


class DescribeParams(_FromHarness):
    """`describe` says which protocol the harness speaks, and asks for nothing."""

    protocol: Version = PROTOCOL_VERSION


class SetupParams(_FromHarness):
    """All that is fixed for a trial before its first data: the same for every container of the trial."""

    device: Device = "cpu"
    threads: int = 1
    image: ImageShape
    hyperparameters: Point = Field(default_factory=dict)
    learner_seed: int
    announcement: Announcement = Field(default_factory=Announcement)
    exemplars: ExemplarBudget = Field(default_factory=ExemplarBudget)
    first_task: FirstTask | None = None
    backbone: Backbone | None = None


class LearnParams(_FromHarness):
    """One task: `data` holds one `<class id, five digits>.npy` (uint8 [N, H, W, C]) per class of `classes`."""

    task: int
    classes: list[ClassId]
    past_classes: list[ClassId] = Field(default_factory=list)
    """Classes of earlier tasks whose data lie in `data` too: only for a learner with the privilege `past_data`."""
    data: Path
    state: Path | None = None
    """Directory of the state after the previous task; None for the first."""
    out: Path
    """Directory for the new state."""
    seconds_left: float | None = None


class PredictParams(_FromHarness):
    """Score `items` (uint8 [count, H, W, C]) against all `classes` seen: `scores.npy`, float32 [count, classes]."""

    items: Path
    count: int
    classes: int
    task: int
    """The task learned last."""
    state: Path
    out: Path
    seconds_left: float | None = None


class EmbedParams(PredictParams):
    """Features of `items`; writes `features.npy` float32 [count, D]."""


class ClassifierParams(_FromHarness):
    """The classification layer; writes `weights.npy` float32 [D, classes]."""

    classes: int
    task: int
    state: Path
    out: Path


class ShutdownParams(_FromHarness):
    """`shutdown` says nothing; the learner answers and exits."""


# --- answers ----------------------------------------------------------------------------------------------------------


class SetupResult(_FromLearner):
    """The learner is ready."""


class LearnResult(_FromLearner):
    """What a learner stores after a task. The harness counts the state; these say what the counts are made of."""

    stored_parameters: Count = 0
    """Parameters carried beyond mounted weights (frozen copies of networks included, exemplars not)."""
    trainable_parameters: Count = 0
    exemplars: dict[ClassId, Count] = Field(default_factory=dict, max_length=MAX_CLASSES)
    """Stored images per class id."""
    metrics: Metrics = Field(default_factory=dict)
    """For display only."""


class PredictResult(_FromLearner):
    """`scores.npy` is written."""


class EmbedResult(_FromLearner):
    """`features.npy` is written."""

    dimension: int = Field(ge=1, le=1 << 20)


class ClassifierResult(_FromLearner):
    """`weights.npy` is written."""

    dimension: int = Field(ge=1, le=1 << 20)


class ShutdownResult(_FromLearner):
    """Goodbye."""


# --- notifications ----------------------------------------------------------------------------------------------------


class Progress(_FromLearner):
    """How far `learn` is; for display only."""

    epoch: Count | None = None
    epochs: Count | None = None
    metrics: Metrics = Field(default_factory=dict)
    note: Annotated[str, Field(max_length=200)] = ""


class StageMark(_FromLearner):
    """`learn` enters a stage; stamped by the host's clock on arrival."""

    stage: Stage


class ProgressNote(_FromLearner):
    jsonrpc: Literal["2.0"] = "2.0"
    method: Literal["progress"] = "progress"
    params: Progress


class StageNote(_FromLearner):
    jsonrpc: Literal["2.0"] = "2.0"
    method: Literal["stage"] = "stage"
    params: StageMark


Note: TypeAlias = Annotated[ProgressNote | StageNote, Field(discriminator="method")]
NOTE: TypeAdapter[ProgressNote | StageNote] = TypeAdapter(Note)


# --- requests ---------------------------------------------------------------------------------------------------------


class _Request(_FromHarness):
    jsonrpc: Literal["2.0"] = "2.0"
    id: int


class DescribeRequest(_Request):
    method: Literal["describe"] = "describe"
    params: DescribeParams = Field(default_factory=DescribeParams)


class SetupRequest(_Request):
    method: Literal["setup"] = "setup"
    params: SetupParams


class LearnRequest(_Request):
    method: Literal["learn"] = "learn"
    params: LearnParams


class PredictRequest(_Request):
    method: Literal["predict"] = "predict"
    params: PredictParams


class EmbedRequest(_Request):
    method: Literal["embed"] = "embed"
    params: EmbedParams


class ClassifierRequest(_Request):
    method: Literal["classifier"] = "classifier"
    params: ClassifierParams


class ShutdownRequest(_Request):
    method: Literal["shutdown"] = "shutdown"
    params: ShutdownParams = Field(default_factory=ShutdownParams)


Request: TypeAlias = Annotated[
    DescribeRequest | SetupRequest | LearnRequest | PredictRequest | EmbedRequest | ClassifierRequest | ShutdownRequest,
    Field(discriminator="method"),
]
REQUEST: TypeAdapter[
    DescribeRequest | SetupRequest | LearnRequest | PredictRequest | EmbedRequest | ClassifierRequest | ShutdownRequest
] = TypeAdapter(Request)

Params: TypeAlias = (
    DescribeParams | SetupParams | LearnParams | PredictParams | EmbedParams | ClassifierParams | ShutdownParams
)
Method: TypeAlias = Literal["describe", "setup", "learn", "predict", "embed", "classifier", "shutdown"]

RESULTS: dict[Method, type[BaseModel]] = {
    "describe": Manifest,
    "setup": SetupResult,
    "learn": LearnResult,
    "predict": PredictResult,
    "embed": EmbedResult,
    "classifier": ClassifierResult,
    "shutdown": ShutdownResult,
}
"""The answer that each method must give."""


# --- responses --------------------------------------------------------------------------------------------------------


class RpcError(_FromLearner):
    """A JSON-RPC error object; `message` is display text, only `code` is acted upon."""

    code: Annotated[int, Field(ge=-(2**31), lt=2**31, strict=True)]
    message: Text


class Response(_FromLearner):
    """An answer: exactly one of `result` and `error`. The result is checked against RESULTS by the asker."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"oneOf": [{"required": ["result"]}, {"required": ["error"]}]}
    )

    jsonrpc: Literal["2.0"] = "2.0"
    id: Annotated[int, Field(strict=True)] | None
    """That of the request; null when the request could not be read."""
    result: dict[str, Any] | None = None
    error: RpcError | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.result is None) == (self.error is None) or len({"result", "error"} & self.model_fields_set) != 1:
            raise ValueError("an answer must have either a result or an error")
        return self

    @model_serializer(mode="wrap")
    def _with_id(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """`encode` leaves out what is None, but JSON-RPC wants `id` even when it is null."""
        rest: dict[str, Any] = handler(self)
        return {"jsonrpc": self.jsonrpc, "id": self.id} | rest


class Code:
    """JSON-RPC error codes: the standard's, and the protocol's own from -32000 down."""

    PARSE = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    CRASHED = -32000
    DIVERGED = -32001
    OUT_OF_MEMORY = -32002
    STATE_REFUSED = -32003
    OUTPUT_REFUSED = -32004
    STATE_TOO_LARGE = -32005
