"""One learner answering requests in this process: every method, every way to fail, reseeding."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from suite.protocol import (
    Choice,
    Code,
    LearnResult,
    Space,
    decode,
    encode,
    npy_header,
    read_array,
    read_state,
    summarise_state,
)
from suite.sdk import Context, DivergedError, Learner, Session, Task
from suite.sdk.seeding import call_seed


class Mean(Learner):
    """Mean colour per class, and a record of what it saw and drew."""

    name = "Mean colour"
    version = "3"
    description = "For tests."
    space = Space(lr=Choice([0.1, 0.2]))
    fault: ClassVar[str] = ""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.means: dict[int, np.ndarray] = {}
        self.drawn = 0.0

    def learn(self, task: Task) -> None:
        self.task = task
        self.drawn = float(np.random.rand()) + random.random()  # noqa: NPY002
        for label in task.classes:
            self.means[label] = task.images[task.labels == label].mean((0, 1, 2))

    def predict(self, images: np.ndarray) -> np.ndarray:
        colours = images.mean((1, 2))
        return -np.stack([((colours - m) ** 2).sum(1) for m in self.means.values()], axis=1)

    def state_dict(self) -> dict[str, Any]:
        return {"means": self.means, "drawn": self.drawn}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.means, self.drawn = state["means"], state["drawn"]


class Open(Mean):
    """Shows its representation."""

    def embed(self, images: np.ndarray) -> np.ndarray:
        features: np.ndarray = images.mean((1, 2))
        return features

    def classifier(self) -> np.ndarray:
        return np.stack(list(self.means.values()), axis=1)


class Trial:
    """Files and requests of a trial of two tasks with two classes each."""

    def __init__(self, root: Path, learner: type[Learner] = Mean, **setup: Any) -> None:
        self.root, self.notes = root, list[tuple[str, dict[str, Any]]]()
        self.session = Session(learner, lambda method, params: self.notes.append((method, params)))
        self.setup_params = {"image": {"height": 2, "width": 2}, "learner_seed": 7, **setup}
        rng = np.random.default_rng(0)
        self.data = root / "data"
        self.data.mkdir(exist_ok=True)
        for label in range(4):
            images = (rng.integers(0, 20, (3 + label, 2, 2, 3)) + 50 * label).astype(np.uint8)
            np.save(self.data / f"{label:05d}.npy", images)
        np.save(root / "items.npy", rng.integers(0, 255, (5, 2, 2, 3), dtype=np.uint8))

    def ask(self, method: str, /, **params: Any) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 4, "method": method, "params": params}
        answer = decode(encode(self.session.handle(message)))
        assert answer["id"] == 4
        return answer

    def result(self, method: str, /, **params: Any) -> dict[str, Any]:
        answer = self.ask(method, **params)
        assert "error" not in answer, answer
        return dict(answer["result"])

    def error(self, method: str, /, **params: Any) -> tuple[int, str]:
        answer = self.ask(method, **params)
        assert "result" not in answer, answer
        return answer["error"]["code"], answer["error"]["message"]

    def set_up(self) -> Trial:
        assert self.result("setup", **self.setup_params) == {}
        return self

    def out(self, name: str) -> Path:
        (self.root / name).mkdir(exist_ok=True)
        return self.root / name

    def learn_params(self, task: int, state: Path | None = None) -> dict[str, Any]:
        return {
            "task": task,
            "classes": [2 * task, 2 * task + 1],
            "data": str(self.data),
            "state": state and str(state),
            "out": str(self.out(f"state{task}")),
        }

    def predict_params(self, seen: int, state: Path) -> dict[str, Any]:
        return {
            "items": str(self.root / "items.npy"),
            "count": 5,
            "classes": seen,
            "task": seen // 2 - 1,
            "state": str(state),
            "out": str(self.out("scores")),
        }


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path).set_up()


def learned(root: Path, learner: type[Learner]) -> Trial:
    trial = Trial(root, learner).set_up()
    trial.result("learn", **trial.learn_params(0))
    return trial


# --- all methods ----------------------------------------------------------------------------------------------------


def test_describe_needs_no_setup_and_tells_what_the_class_says(tmp_path: Path) -> None:
    assert Trial(tmp_path).result("describe", protocol="1.0") == {
        "protocol": "1.0",
        "name": "Mean colour",
        "version": "3",
        "description": "For tests.",
        "space": {"lr": {"when": {}, "kind": "choice", "values": [0.1, 0.2]}},
        "privileges": [],
        "embeds": False,
        "has_classifier": False,
    }
    manifest = Trial(tmp_path, Open).result("describe")
    assert manifest["embeds"]
    assert manifest["has_classifier"]


def test_a_learner_without_a_name_has_that_of_its_class() -> None:
    class Nameless(Mean):
        name = ""

    assert Nameless.manifest().name == "Nameless"


def test_two_tasks_and_their_predictions(trial: Trial) -> None:
    result = trial.result("learn", **trial.learn_params(0))
    assert result == {"stored_parameters": 6, "trainable_parameters": 6, "exemplars": {}, "metrics": {}}
    fresh = Trial(trial.root).set_up()
    fresh.result("learn", **fresh.learn_params(1, trial.root / "state0"))
    state = read_state(trial.root / "state1")
    for label in range(4):
        images = np.load(trial.data / f"{label:05d}.npy")
        np.testing.assert_array_equal(state["means"][label], images.mean((0, 1, 2)))
    reader = Trial(trial.root).set_up()
    assert reader.result("predict", **reader.predict_params(4, trial.root / "state1")) == {}
    scores = read_array(trial.root / "scores" / "scores.npy", (5, 4))
    items = np.load(trial.root / "items.npy").mean((1, 2))
    expected = [[-(((i - state["means"][c]) ** 2).sum()) for c in range(4)] for i in items]
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_a_task_holds_its_images_class_by_class(tmp_path: Path) -> None:
    seen: list[Task] = []

    class Watcher(Mean):
        def learn(self, task: Task) -> None:
            seen.append(task)
            super().learn(task)
            task.images[...] = 0  # its own copy: it may

    trial = Trial(tmp_path, Watcher).set_up()
    before = (trial.data / "00003.npy").read_bytes()
    trial.result("learn", **{**trial.learn_params(0), "classes": [3, 1], "seconds_left": 2.5})
    (task,) = seen
    assert (task.index, task.classes, task.is_first, task.seconds_left) == (0, [3, 1], True, 2.5)
    assert task.labels.tolist() == [3] * 6 + [1] * 4
    assert task.labels.dtype == np.int64
    assert task.images.shape == (10, 2, 2, 3)
    assert task.images.dtype == np.uint8
    assert task.past_images is None
    assert (trial.data / "00003.npy").read_bytes() == before


def test_past_data_come_with_their_labels(tmp_path: Path) -> None:
    seen: list[Task] = []

    class Joint(Mean):
        privileges = ("past_data",)

        def learn(self, task: Task) -> None:
            seen.append(task)
            super().learn(task)

    trial = Trial(tmp_path, Joint).set_up()
    trial.result("learn", **{**trial.learn_params(1), "past_classes": [0, 1]})
    assert seen[0].past_labels is not None
    assert seen[0].past_labels.tolist() == [0] * 3 + [1] * 4
    assert seen[0].past_images is not None
    assert len(seen[0].past_images) == 7
    assert trial.result("describe")["privileges"] == ["past_data"]


def test_a_representation_is_shown_by_those_who_have_one(tmp_path: Path) -> None:
    trial = learned(tmp_path, Open)
    params = trial.predict_params(2, trial.root / "state0")
    assert trial.result("embed", **params) == {"dimension": 3}
    items = np.load(trial.root / "items.npy")
    features = read_array(trial.root / "scores" / "features.npy", (5, 3))
    np.testing.assert_allclose(features, items.mean((1, 2)), rtol=1e-6)
    del params["items"], params["count"]
    assert trial.result("classifier", **params) == {"dimension": 3}
    weights = read_array(trial.root / "scores" / "weights.npy", (3, 2))
    np.testing.assert_allclose(weights.T, list(read_state(trial.root / "state0")["means"].values()), rtol=1e-6)


def test_the_others_answer_that_they_do_not(tmp_path: Path) -> None:
    trial = learned(tmp_path, Mean)
    params = trial.predict_params(2, trial.root / "state0")
    assert trial.error("embed", **params) == (Code.METHOD_NOT_FOUND, "this learner does not answer 'embed'")
    assert trial.error("classifier", **params)[0] == Code.METHOD_NOT_FOUND


def test_shutdown_ends_the_session(trial: Trial) -> None:
    assert not trial.session.is_over
    assert trial.result("shutdown") == {}
    assert trial.session.is_over


def test_setup_says_what_is_fixed(tmp_path: Path) -> None:
    contexts: list[Context] = []

    class Curious(Mean):
        def setup(self) -> None:
            contexts.append(self.context)

    Trial(tmp_path, Curious, hyperparameters={"lr": 0.2, "momentum": None}, threads=3).set_up()
    assert contexts[0].hyperparameters == {"lr": 0.2, "momentum": None}
    assert contexts[0].setup.threads == 3
    assert contexts[0].setup.image.channels == 3


# --- requests that cannot be answered -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({}, Code.INVALID_REQUEST),
        ({"jsonrpc": "1.0", "id": 1, "method": "describe"}, Code.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "method": "describe"}, Code.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": "1", "method": "describe"}, Code.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": True, "method": "describe"}, Code.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": None, "method": "describe"}, Code.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1}, Code.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1, "method": ["describe"]}, Code.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1, "method": "train"}, Code.METHOD_NOT_FOUND),
        ({"jsonrpc": "2.0", "id": 1, "method": "\ud800"}, Code.METHOD_NOT_FOUND),
        ({"jsonrpc": "2.0", "id": 1, "method": "setup"}, Code.INVALID_PARAMS),
        ({"jsonrpc": "2.0", "id": 1, "method": "setup", "params": 3}, Code.INVALID_PARAMS),
        ({"jsonrpc": "2.0", "id": 1, "method": "learn", "params": {"task": "x"}}, Code.INVALID_PARAMS),
        ({"jsonrpc": "2.0", "id": 1, "method": "describe", "params": {"protocol": "9.0"}}, Code.INVALID_PARAMS),
    ],
)
def test_a_bad_request_is_answered_with_its_code(message: dict[str, Any], code: int) -> None:
    session = Session(Mean, lambda *_: None)
    response = session.handle(message)
    assert response.error is not None
    assert response.error.code == code
    assert decode(encode(response))["id"] == (1 if message.get("id") == 1 and message["id"] is not True else None)


def test_work_before_setup_is_refused(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    for method, params in {"learn": trial.learn_params(0), "predict": trial.predict_params(2, tmp_path)}.items():
        assert trial.error(method, **params) == (Code.INVALID_REQUEST, f"{method} before setup")


def test_data_that_cannot_be_read_are_invalid_parameters(trial: Trial) -> None:
    np.save(trial.data / "00000.npy", np.array([{"a": 1}], dtype=object))
    assert trial.error("learn", **trial.learn_params(0))[0] == Code.INVALID_PARAMS  # pickles are never loaded
    assert trial.error("learn", **{**trial.learn_params(0), "classes": [77]})[0] == Code.INVALID_PARAMS
    assert trial.error("learn", **{**trial.learn_params(0), "classes": []})[0] == Code.INVALID_PARAMS


# --- learners that fail ---------------------------------------------------------------------------------------------


class OutOfMemoryError(RuntimeError):
    """Named as PyTorch's."""


FAILURES: dict[str, tuple[BaseException, int, str]] = {
    "an exception": (ZeroDivisionError("by zero"), Code.CRASHED, "ZeroDivisionError: by zero"),
    "an exit": (SystemExit(3), Code.CRASHED, "SystemExit: 3"),
    "divergence": (DivergedError("loss is NaN"), Code.DIVERGED, "loss is NaN"),
    "divergence without words": (DivergedError(), Code.DIVERGED, "training diverged"),
    "no memory": (MemoryError(), Code.OUT_OF_MEMORY, "out of memory"),
    "no GPU memory": (OutOfMemoryError("CUDA out of memory"), Code.OUT_OF_MEMORY, "CUDA out of memory"),
    "no CPU memory for PyTorch": (
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        Code.OUT_OF_MEMORY,
        "DefaultCPUAllocator",
    ),
    "a long story": (ValueError("x" * 10_000), Code.CRASHED, "ValueError: xxx"),
    "lone surrogates": (ValueError("\udcff file"), Code.CRASHED, "ValueError: ? file"),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("where", ["__init__", "setup", "learn", "state_dict", "report", "load_state_dict", "predict"])
def test_whatever_the_author_raises_is_answered(name: str, where: str, tmp_path: Path, capsys: Any) -> None:
    error, code, text = FAILURES[name]

    def fail(*_: Any) -> Any:
        raise error

    trial = learned(tmp_path, Mean)
    trial.session = Session(type("Failing", (Mean,), {where: fail}), lambda *_: None)
    state = tmp_path / "state0"
    answers = [
        trial.ask("setup", **trial.setup_params),
        trial.ask("learn", **trial.learn_params(1, state)),
        trial.ask("predict", **trial.predict_params(2, state)),
    ]
    errors = [a["error"] for a in answers if "error" in a]
    assert errors[0]["code"] == code
    assert text in errors[0]["message"]
    assert len(errors[0]["message"]) <= 2000
    needs_no_explanation = isinstance(error, DivergedError | MemoryError)
    assert ("Traceback" in capsys.readouterr().err) != needs_no_explanation or name == "lone surrogates"


def test_a_state_that_cannot_be_carried_is_refused_by_its_path(tmp_path: Path) -> None:
    class Hoarder(Mean):
        def state_dict(self) -> dict[str, Any]:
            return {"means": self.means, "extra": [1, object()]}

    trial = Trial(tmp_path, Hoarder).set_up()
    code, message = trial.error("learn", **trial.learn_params(0))
    assert code == Code.STATE_REFUSED
    assert "state['extra'][1] is a builtins.object" in message
    assert list((tmp_path / "state0").iterdir()) == []


def test_a_state_that_does_not_fit_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    trial = Trial(tmp_path).set_up()
    assert trial.error("learn", **trial.learn_params(0))[0] == Code.STATE_TOO_LARGE


def test_a_broken_state_is_refused(trial: Trial) -> None:
    (trial.root / "broken").mkdir()
    assert trial.error("learn", **trial.learn_params(1, trial.root / "broken"))[0] == Code.STATE_REFUSED


def test_what_is_not_in_the_state_is_gone(tmp_path: Path) -> None:
    class Forgetful(Mean):
        def state_dict(self) -> dict[str, Any]:
            return {"means": {}, "drawn": 0.0}

    learned(tmp_path, Forgetful)
    fresh = Trial(tmp_path, Forgetful).set_up()
    assert fresh.error("predict", **fresh.predict_params(2, tmp_path / "state0"))[0] == Code.CRASHED


OUTPUTS: dict[str, tuple[Any, int, str]] = {
    "too few rows": (
        np.zeros((4, 2)),
        Code.OUTPUT_REFUSED,
        "must be numbers of shape [5, 2], got float64 [4, 2]",
    ),
    "too many classes": (np.zeros((5, 3)), Code.OUTPUT_REFUSED, "[5, 3]"),
    "transposed": (np.zeros((2, 5)), Code.OUTPUT_REFUSED, "[2, 5]"),
    "flat": (np.zeros(10), Code.OUTPUT_REFUSED, "[10]"),
    "nothing": (None, Code.OUTPUT_REFUSED, "object []"),
    "ragged": ([[1, 2], [3]], Code.CRASHED, "inhomogeneous"),
    "text": (np.full((5, 2), "1"), Code.OUTPUT_REFUSED, "<U1"),
    "objects": (np.zeros((5, 2), object), Code.OUTPUT_REFUSED, "object"),
    "booleans": (np.zeros((5, 2), bool), Code.OUTPUT_REFUSED, "bool"),
    "complex": (np.zeros((5, 2), complex), Code.OUTPUT_REFUSED, "complex128"),
    "NaN": (np.full((5, 2), np.nan), Code.DIVERGED, "NaN"),
    "infinity": (np.full((5, 2), -np.inf), Code.DIVERGED, "infinite"),
    "beyond float32": (np.full((5, 2), 1e39), Code.DIVERGED, "beyond float32"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_scores_that_are_none_are_refused_in_the_authors_terms(name: str, tmp_path: Path) -> None:
    output, code, text = OUTPUTS[name]
    trial = learned(tmp_path, type("Odd", (Mean,), {"predict": lambda *_: output}))
    found = trial.error("predict", **trial.predict_params(2, tmp_path / "state0"))
    assert found[0] == code
    assert text in found[1]
    assert list((tmp_path / "scores").iterdir()) == []


@pytest.mark.parametrize(
    "scores",
    [
        np.ones((5, 2), np.float16),
        np.ones((5, 2), np.int64),
        np.asfortranarray(np.ones((5, 2))),
        np.ones((5, 2), ">f8"),
        [[1.0, 1.0]] * 5,
    ],
)
def test_scores_of_any_number_type_and_layout_are_written_as_float32(scores: Any, tmp_path: Path) -> None:
    trial = learned(tmp_path, type("Fine", (Mean,), {"predict": lambda *_: scores}))
    trial.result("predict", **trial.predict_params(2, tmp_path / "state0"))
    file = tmp_path / "scores" / "scores.npy"
    assert file.read_bytes() == npy_header("<f4", (5, 2)) + np.ones(10, "<f4").tobytes()


@pytest.mark.parametrize(
    ("method", "output", "text"),
    [
        ("embed", np.zeros(5), "features [N, D], got an array of shape [5]"),
        ("embed", np.zeros((5, 0)), "features [N, D]"),
        ("embed", np.zeros((4, 3)), "shape [5, 3], got float64 [4, 3]"),
        ("classifier", np.zeros(3), "weights [D, classes seen]"),
        ("classifier", np.zeros((3, 4)), "shape [3, 2]"),
    ],
)
def test_a_representation_of_the_wrong_shape_is_refused(method: str, output: Any, text: str, tmp_path: Path) -> None:
    trial = learned(tmp_path, type("Odd", (Open,), {method: lambda *_: output}))
    code, message = trial.error(method, **trial.predict_params(2, tmp_path / "state0"))
    assert code == Code.OUTPUT_REFUSED
    assert text in message


# --- reports and notifications --------------------------------------------------------------------------------------


def test_a_report_of_the_authors_own_is_sent(tmp_path: Path) -> None:
    class Exact(Mean):
        def report(self) -> LearnResult:
            return LearnResult(stored_parameters=10, exemplars={0: 3}, metrics={"loss": 0.5})

    trial = Trial(tmp_path, Exact).set_up()
    assert trial.result("learn", **trial.learn_params(0)) == {
        "stored_parameters": 10,
        "trainable_parameters": 0,
        "exemplars": {"0": 3},
        "metrics": {"loss": 0.5},
    }


@pytest.mark.parametrize("report", [lambda _: None, lambda _: LearnResult(metrics={"a": float("nan")})])
def test_a_malformed_report_is_a_crash_not_the_end(report: Any, tmp_path: Path) -> None:
    trial = Trial(tmp_path, type("Odd", (Mean,), {"report": report})).set_up()
    assert trial.error("learn", **trial.learn_params(0))[0] == Code.CRASHED
    assert trial.result("describe")


def test_the_default_report_counts_floating_point_numbers(tmp_path: Path) -> None:
    class Mixed(Mean):
        def state_dict(self) -> dict[str, Any]:
            return {"w": np.zeros((2, 3), np.float16), "images": np.zeros((4, 4), np.uint8), "n": 3, "f": 1.5}

    trial = Trial(tmp_path, Mixed).set_up()
    assert trial.result("learn", **trial.learn_params(0))["stored_parameters"] == 6
    assert summarise_state(tmp_path / "state0").elements == 22


def test_progress_and_stages_are_told(tmp_path: Path) -> None:
    class Chatty(Mean):
        def learn(self, task: Task) -> None:
            super().learn(task)
            self.progress(1, 8, "warming up", loss=np.float32(0.5), accuracy=1)
            self.progress(note="n" * 500)
            self.stage("post")

    trial = Trial(tmp_path, Chatty).set_up()
    trial.result("learn", **trial.learn_params(0))
    assert trial.notes == [
        ("progress", {"epoch": 1, "epochs": 8, "note": "warming up", "metrics": {"loss": 0.5, "accuracy": 1.0}}),
        ("progress", {"note": "n" * 200, "metrics": {}}),
        ("stage", {"stage": "post"}),
    ]


def test_a_loss_that_is_no_number_does_not_end_the_trial(tmp_path: Path) -> None:
    class Diverging(Mean):
        def learn(self, task: Task) -> None:
            super().learn(task)
            self.progress(loss=float("nan"), norm=float("inf"), epochs_left=3)

    trial = Trial(tmp_path, Diverging).set_up()
    trial.result("learn", **trial.learn_params(0))
    assert trial.notes == [("progress", {"note": "", "metrics": {"epochs_left": 3.0}})]


# --- reseeding ------------------------------------------------------------------------------------------------------


def drawn(root: Path, **setup: Any) -> float:
    trial = Trial(root, **setup).set_up()
    trial.result("learn", **trial.learn_params(0))
    return float(read_state(root / "state0")["drawn"])


def test_equal_seeds_draw_equally_whatever_was_drawn_before(tmp_path: Path) -> None:
    first = drawn(tmp_path)
    random.random()
    np.random.rand(3)  # noqa: NPY002
    assert drawn(tmp_path) == first
    assert drawn(tmp_path, learner_seed=8) != first


def test_tasks_and_calls_draw_differently() -> None:
    seeds = {call_seed(s, t, c) for s in (1, 2) for t in (0, 1) for c in ("setup", "load", "learn", "predict")}
    assert len(seeds) == 16
    assert call_seed(7, 0, "learn") == 1846551574


def test_loading_a_state_draws_the_same_in_a_used_process_as_in_a_fresh_one(tmp_path: Path) -> None:
    draws: list[float] = []

    class Projector(Mean):
        def load_state_dict(self, state: dict[str, Any]) -> None:
            super().load_state_dict(state)
            draws.append(random.random())

    trial = learned(tmp_path, Projector)
    for _ in range(2):
        trial.result("predict", **trial.predict_params(2, tmp_path / "state0"))
    fresh = Trial(tmp_path, Projector).set_up()
    fresh.result("predict", **fresh.predict_params(2, tmp_path / "state0"))
    assert len(set(draws)) == 1
