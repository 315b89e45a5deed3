"""Golden files: one message of every variant, with every field set somewhere; the published schema; the handshake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel, ValidationError

from suite.protocol import (
    NOTE,
    PROTOCOL_VERSION,
    REQUEST,
    Announcement,
    Backbone,
    Choice,
    ClassifierParams,
    ClassifierResult,
    Code,
    DescribeParams,
    EmbedParams,
    EmbedResult,
    ExemplarBudget,
    FirstTask,
    ImageShape,
    Int,
    LearnParams,
    LearnResult,
    LogUniform,
    Manifest,
    Method,
    PredictParams,
    PredictResult,
    Progress,
    ProgressNote,
    Response,
    RpcError,
    SetupParams,
    SetupResult,
    Space,
    StageMark,
    StageNote,
    Uniform,
    decode,
    encode,
)
from suite.protocol.messages import RESULTS as PROTOCOL_RESULTS
from suite.protocol.messages import (
    ClassifierRequest,
    DescribeRequest,
    EmbedRequest,
    LearnRequest,
    PredictRequest,
    SetupRequest,
    ShutdownRequest,
    ShutdownResult,
)
from suite.protocol.schema import protocol_schema
from suite.sandbox.channel import Channel, EndedError

SPACE = Space(
    epochs=Choice([3, 5]),
    scheduler=Choice(["step", "cosine", None]),
    nesterov=Choice([True, False]),
    num_milestones=Int(2, 4, when={"scheduler": ["step"]}),
    momentum=Uniform(0.0, 0.99),
    lr=LogUniform(0.001, 0.5),
)
MANIFEST = Manifest(
    name="Experience Replay",
    version="2",
    description="Stores images; “replays” them.",
    space=SPACE,
    privileges=["past_data"],
    embeds=True,
    has_classifier=True,
)
SETUP = SetupParams(
    device="cuda",
    threads=2,
    image=ImageShape(height=32, width=48, channels=3),
    hyperparameters={"epochs": 3, "scheduler": None, "nesterov": True, "momentum": 0.5, "lr": 0.1},
    learner_seed=2**62 + 1,
    announcement=Announcement(tasks=2, classes_per_task=[5, 5]),
    exemplars=ExemplarBudget(total=500, per_class=20),
    first_task=FirstTask(epochs=8, lr=0.1, milestones=[4, 6], lr_decay=0.1, weight_decay=0.0005),
    backbone=Backbone(name="vit_tiny", path="/suite/weights/vit_tiny.safetensors"),
)
LEARN = LearnParams(
    task=1,
    classes=[5, 6],
    past_classes=[0, 1],
    data="/suite/in/data",
    state="/suite/in/state",
    out="/suite/out",
    seconds_left=12.5,
)
PREDICT = PredictParams(
    items="/suite/in/items/items.npy",
    count=7,
    classes=4,
    task=1,
    state="/suite/in/state",
    out="/suite/out",
    seconds_left=30.0,
)

REQUESTS: dict[str, BaseModel] = {
    "request-describe": DescribeRequest(id=1),
    "request-setup": SetupRequest(id=1, params=SETUP),
    "request-setup-least": SetupRequest(id=1, params=SetupParams(image=ImageShape(height=8, width=8), learner_seed=0)),
    "request-learn": LearnRequest(id=1, params=LEARN),
    "request-learn-first": LearnRequest(
        id=1, params=LearnParams(task=0, classes=[0], data="/suite/in/data", out="/suite/out")
    ),
    "request-predict": PredictRequest(id=1, params=PREDICT),
    "request-embed": EmbedRequest(id=1, params=EmbedParams(**PREDICT.model_dump())),
    "request-classifier": ClassifierRequest(
        id=1, params=ClassifierParams(classes=4, task=1, state="/suite/in/state", out="/suite/out")
    ),
    "request-shutdown": ShutdownRequest(id=1),
}

RESULTS: dict[str, tuple[str, BaseModel]] = {
    "result-describe": ("describe", MANIFEST),
    "result-setup": ("setup", SetupResult()),
    "result-learn": (
        "learn",
        LearnResult(
            stored_parameters=2**40, trainable_parameters=10, exemplars={0: 20, 11: 19}, metrics={"train/loss": 0.25}
        ),
    ),
    "result-predict": ("predict", PredictResult()),
    "result-embed": ("embed", EmbedResult(dimension=64)),
    "result-classifier": ("classifier", ClassifierResult(dimension=64)),
    "result-shutdown": ("shutdown", ShutdownResult()),
}

NOTES: dict[str, BaseModel] = {
    "note-progress": ProgressNote(params=Progress(epoch=1, epochs=8, metrics={"loss": 1.5}, note="warming up")),
    "note-progress-least": ProgressNote(params=Progress()),
    "note-stage-train": StageNote(params=StageMark(stage="train")),
    "note-stage-post": StageNote(params=StageMark(stage="post")),
}

ERRORS: dict[str, Response] = {
    f"error-{name.lower().replace('_', '-')}": Response(
        id=None if code == Code.PARSE else 1, error=RpcError(code=code, message=f"{name.lower()}: why")
    )
    for name, code in vars(Code).items()
    if name.isupper()
}


def response(result: BaseModel) -> Response:
    return Response(id=1, result=result.model_dump(mode="json"))


ALL: dict[str, BaseModel] = {
    **REQUESTS,
    **{name: response(result) for name, (_, result) in RESULTS.items()},
    **NOTES,
    **ERRORS,
}


GOLDEN = Path(__file__).parent / "golden"
SCHEMA = Path(__file__).parents[2] / "docs" / "protocol.schema.json"


def golden(name: str) -> bytes:
    return (GOLDEN / f"{name}.json").read_bytes()


def test_there_is_a_golden_file_for_every_message_and_no_other() -> None:
    assert {f.stem for f in GOLDEN.iterdir()} == set(ALL)


def test_every_variant_is_in_the_catalogue() -> None:
    assert {decode(golden(name))["method"] for name in REQUESTS} == set(PROTOCOL_RESULTS)
    assert {method for method, _ in RESULTS.values()} == set(PROTOCOL_RESULTS)
    assert {type(note) for note in NOTES.values()} == {ProgressNote, StageNote}


@pytest.mark.parametrize("name", ALL)
def test_encoding_gives_exactly_these_bytes(name: str) -> None:
    assert encode(ALL[name]) == golden(name)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_read_back(name: str) -> None:
    assert REQUEST.validate_python(decode(golden(name))) == REQUESTS[name]


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_read_back(name: str) -> None:
    answer = Response.model_validate(decode(golden(name)))
    method, result = RESULTS[name]
    assert PROTOCOL_RESULTS[cast("Method", method)].model_validate(answer.result) == result


@pytest.mark.parametrize("name", NOTES)
def test_a_notification_is_read_back(name: str) -> None:
    assert NOTE.validate_python(decode(golden(name))) == NOTES[name]


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_read_back(name: str) -> None:
    assert Response.model_validate(decode(golden(name))) == ERRORS[name]


@pytest.mark.parametrize("name", REQUESTS)
def test_the_harness_sends_the_golden_bytes(name: str) -> None:
    """The channel has a request class of its own; it must speak alike."""
    sent: list[bytes] = []
    channel = Channel()

    def send(line: bytes, deadline: float) -> None:
        sent.append(line)
        channel.end()

    request = REQUEST.validate_python(decode(golden(name)))
    with pytest.raises(EndedError):
        channel.ask(request.method, request.params, 10, send, None)
    assert sent == [golden(name)]


def test_the_golden_point_keeps_a_null_value() -> None:
    assert decode(golden("request-setup"))["params"]["hyperparameters"]["scheduler"] is None


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REQUESTS)
def test_a_learner_ignores_fields_that_it_does_not_know(name: str) -> None:
    message = decode(golden(name))
    message["params"]["news"] = {"of": "a later harness"}
    assert REQUEST.validate_python(message) == REQUESTS[name]


@pytest.mark.parametrize("name", [*RESULTS, *NOTES, *ERRORS])
def test_the_harness_refuses_fields_that_it_does_not_know(name: str) -> None:
    message = decode(golden(name))
    inner = next(message[k] for k in ("result", "params", "error") if k in message)
    inner["contraband"] = "x"
    with pytest.raises(ValidationError, match="contraband"):
        parse(name, message)


def parse(name: str, message: dict[str, Any]) -> BaseModel:
    if name in NOTES:
        return NOTE.validate_python(message)
    answer = Response.model_validate(message)
    return (
        answer if name in ERRORS else PROTOCOL_RESULTS[cast("Method", RESULTS[name][0])].model_validate(answer.result)
    )


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"result": {}, "error": {"code": 1, "message": ""}},
        {"result": None},
        {"error": None},
        {"result": {}, "error": None},
        {"result": []},
    ],
)
def test_an_answer_has_either_a_result_or_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Response.model_validate({"jsonrpc": "2.0", "id": 1, **fields})


@pytest.mark.parametrize("bad", [True, 1.0, "1"])
def test_the_id_of_an_answer_is_an_integer(bad: object) -> None:
    with pytest.raises(ValidationError):
        Response.model_validate({"jsonrpc": "2.0", "id": bad, "result": {}})


@pytest.mark.parametrize(
    "metrics",
    [{"loss": float("nan")}, {"loss": float("inf")}, {"a b": 1.0}, {"x" * 65: 1.0}, {f"m{i}": 0.0 for i in range(65)}],
)
def test_metrics_are_bounded_and_finite(metrics: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        LearnResult(metrics=metrics)


@pytest.mark.parametrize("count", [-1, 2**53 + 1, 1.5, True, "3"])
def test_counts_are_counts(count: object) -> None:
    with pytest.raises(ValidationError):
        LearnResult.model_validate({"stored_parameters": count})


# --- the handshake ----------------------------------------------------------------------------------------------------


def test_both_sides_tell_their_version_in_describe() -> None:
    assert decode(golden("request-describe"))["params"]["protocol"] == PROTOCOL_VERSION
    assert decode(golden("result-describe"))["result"]["protocol"] == PROTOCOL_VERSION


def test_a_later_minor_version_is_understood() -> None:
    assert Manifest(name="x", protocol="1.99").protocol == "1.99"


@pytest.mark.parametrize("version", ["2.0", "0.9", "11.0", "1", "1.0.0", "one", "1.0\n", "1.٣"])
def test_another_major_version_or_a_malformed_one_is_refused(version: str) -> None:
    for model in (DescribeParams, Manifest):
        with pytest.raises(ValidationError, match="protocol"):
            model.model_validate({"name": "x", "protocol": version})


# --- the published schema ---------------------------------------------------------------------------------------------


def test_the_checked_in_schema_is_the_one_of_the_code() -> None:
    """`suite protocol schema > docs/protocol.schema.json` brings it up to date."""
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == protocol_schema()


def test_the_schema_describes_every_golden_file() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = protocol_schema()

    def check(reference: dict[str, Any], value: Any) -> None:
        jsonschema.Draft202012Validator({**reference, "$defs": schema["$defs"]}).validate(value)

    jsonschema.Draft202012Validator.check_schema(schema)
    for name in REQUESTS:
        message = decode(golden(name))
        check(schema["methods"][message["method"]]["request"], message)
    for name, (method, _) in RESULTS.items():
        message = decode(golden(name))
        check(schema["response"], message)
        check(schema["methods"][method]["result"], message["result"])
    for name in NOTES:
        check({"anyOf": schema["notifications"]}, decode(golden(name)))
    for name in ERRORS:
        check(schema["response"], decode(golden(name)))


def test_the_schema_names_every_error_code() -> None:
    assert protocol_schema()["errors"] == {
        "PARSE": -32700,
        "INVALID_REQUEST": -32600,
        "METHOD_NOT_FOUND": -32601,
        "INVALID_PARAMS": -32602,
        "CRASHED": -32000,
        "DIVERGED": -32001,
        "OUT_OF_MEMORY": -32002,
        "STATE_REFUSED": -32003,
        "OUTPUT_REFUSED": -32004,
        "STATE_TOO_LARGE": -32005,
    }
