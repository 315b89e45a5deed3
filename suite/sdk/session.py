"""One learner answering requests, apart from how they arrive: the server, tests and in-process runs share it."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from suite.protocol.errors import StateError, StateTooLargeError
from suite.protocol.files import read_state, write_array, write_state
from suite.protocol.limits import MAX_TEXT
from suite.protocol.messages import (
    REQUEST,
    RESULTS,
    ClassifierParams,
    ClassifierResult,
    Code,
    DescribeParams,
    EmbedParams,
    EmbedResult,
    LearnParams,
    LearnResult,
    Manifest,
    PredictParams,
    PredictResult,
    Response,
    RpcError,
    SetupParams,
    SetupResult,
    ShutdownParams,
    ShutdownResult,
)
from suite.sdk.learner import Context, DivergedError, Learner, Task
from suite.sdk.seeding import call_seed, reseed

Notify = Callable[[str, dict[str, Any]], None]


class RefusedError(Exception):
    """A request cannot be answered; `code` is the JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Session:
    """Answers requests for one learner class. `is_over` turns true after `shutdown`."""

    def __init__(self, learner_class: type[Learner], notify: Notify) -> None:
        self._class = learner_class
        self._notify = notify
        self._learner: Learner | None = None
        self._setup: SetupParams | None = None
        self.is_over = False

    def handle(self, message: dict[str, Any]) -> Response:
        """Answer one decoded request; never raises for what the author's code does."""
        request_id = message.get("id") if _is_id(message.get("id")) else None
        try:
            return Response(id=request_id, result=self._dispatch(message).model_dump(mode="json"))
        except RefusedError as error:
            return self._error(request_id, error.code, str(error))
        except DivergedError as error:
            return self._error(request_id, Code.DIVERGED, str(error) or "training diverged")
        except StateTooLargeError as error:
            return self._error(request_id, Code.STATE_TOO_LARGE, str(error))
        except StateError as error:
            return self._error(request_id, Code.STATE_REFUSED, str(error))
        except MemoryError:
            return self._error(request_id, Code.OUT_OF_MEMORY, "out of memory")
        except (Exception, SystemExit) as error:  # noqa: BLE001  (the author's code may raise anything, or exit)
            _log_traceback()
            code = Code.OUT_OF_MEMORY if _is_out_of_memory(error) else Code.CRASHED
            return self._error(request_id, code, f"{type(error).__name__}: {error}")

    @staticmethod
    def _error(request_id: int | None, code: int, message: str) -> Response:
        text = message[:MAX_TEXT].encode("utf-8", "replace").decode()  # a file name may hold lone surrogates
        return Response(id=request_id, error=RpcError(code=code, message=text))

    def _dispatch(self, message: dict[str, Any]) -> BaseModel:
        method = message.get("method")
        if message.get("jsonrpc") != "2.0" or not _is_id(message.get("id")) or not isinstance(method, str):
            raise RefusedError(Code.INVALID_REQUEST, "not a JSON-RPC 2.0 request with an integer id and a method")
        if method not in RESULTS:
            raise RefusedError(Code.METHOD_NOT_FOUND, f"unknown method {method[:80]!r}")
        try:
            params = REQUEST.validate_python(message).params
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise RefusedError(Code.INVALID_PARAMS, f"{where}: {error.errors()[0]['msg']}") from error
        match params:
            case DescribeParams():
                return self._class.manifest()
            case SetupParams():
                return self._set_up(params)
            case LearnParams():
                return self._learn(params)
            case EmbedParams():
                return self._embed(params)
            case PredictParams():
                return self._predict(params)
            case ClassifierParams():
                return self._classifier(params)
            case ShutdownParams():
                self.is_over = True
                return ShutdownResult()

    def _set_up(self, params: SetupParams) -> SetupResult:
        self._setup = params
        reseed(call_seed(params.learner_seed, 0, "setup"))
        self._learner = self._class(Context(params, self._notify, Path(tempfile.gettempdir())))
        self._learner.setup()
        return SetupResult()

    def _ready(self, task: int, call: str, state: str | None) -> Learner:
        """The learner, carrying `state`, reseeded for the call (and for loading, which may draw too)."""
        if self._learner is None or self._setup is None:
            raise RefusedError(Code.INVALID_REQUEST, f"{call} before setup")
        if state is not None:
            reseed(call_seed(self._setup.learner_seed, task, "load"))
            self._learner.load_state_dict(read_state(Path(state)))
        reseed(call_seed(self._setup.learner_seed, task, call))
        return self._learner

    def _learn(self, params: LearnParams) -> LearnResult:
        images, labels = load_classes(Path(params.data), params.classes)
        past_images, past_labels = (
            load_classes(Path(params.data), params.past_classes) if params.past_classes else (None, None)
        )
        learner = self._ready(params.task, "learn", params.state)
        learner.learn(Task(params.task, params.classes, images, labels, past_images, past_labels, params.seconds_left))
        write_state(learner.state_dict(), Path(params.out))
        return learner.report()

    def _predict(self, params: PredictParams) -> PredictResult:
        learner = self._ready(params.task, "predict", params.state)
        scores = learner.predict(_load_items(params))
        _write(scores, (params.count, params.classes), Path(params.out) / "scores.npy")
        return PredictResult()

    def _embed(self, params: EmbedParams) -> EmbedResult:
        learner = self._ready(params.task, "embed", params.state)
        features = _matrix(_optional(learner, "embed")(_load_items(params)), "features [N, D]")
        _write(features, (params.count, features.shape[1]), Path(params.out) / "features.npy")
        return EmbedResult(dimension=features.shape[1])

    def _classifier(self, params: ClassifierParams) -> ClassifierResult:
        learner = self._ready(params.task, "classifier", params.state)
        weights = _matrix(_optional(learner, "classifier")(), "weights [D, classes seen]")
        _write(weights, (weights.shape[0], params.classes), Path(params.out) / "weights.npy")
        return ClassifierResult(dimension=weights.shape[0])


def _log_traceback() -> None:
    """To stderr, which the author's code may have closed or replaced."""
    with contextlib.suppress(OSError, ValueError):
        traceback.print_exc(file=sys.stderr)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_out_of_memory(error: BaseException) -> bool:
    """PyTorch has a class for the GPU's memory, and for the CPU's only a message."""
    return type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator: can't allocate" in str(error)


def _optional(learner: Learner, name: str) -> Callable[..., Any]:
    method: Callable[..., Any] | None = getattr(learner, name, None)
    if method is None:
        raise RefusedError(Code.METHOD_NOT_FOUND, f"this learner does not answer {name!r}")
    return method


def load_classes(directory: Path, classes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [N, H, W, C] and labels int64 [N] of a task directory, class by class."""
    try:
        # Mapped, so that joining them does not hold the images twice.
        parts = [np.load(directory / f"{c:05d}.npy", allow_pickle=False, mmap_mode="r") for c in classes]
        images = np.concatenate(parts)
    except (OSError, ValueError) as error:
        raise RefusedError(Code.INVALID_PARAMS, f"the task's data cannot be read: {error}") from error
    return images, np.repeat(np.asarray(classes, dtype=np.int64), [len(p) for p in parts])


def _load_items(params: PredictParams) -> np.ndarray:
    try:
        items: np.ndarray = np.load(params.items, allow_pickle=False, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise RefusedError(Code.INVALID_PARAMS, f"the items cannot be read: {error}") from error
    return items


def _matrix(array: Any, what: str) -> np.ndarray:
    values = np.asarray(array)
    if values.ndim != 2 or values.shape[0] == 0 or values.shape[1] == 0:
        raise RefusedError(Code.OUTPUT_REFUSED, f"expected {what}, got an array of shape {list(values.shape)}")
    return values


def _write(array: Any, shape: tuple[int, ...], path: Path) -> None:
    """Write an output, refusing early, in the author's terms, what the harness would refuse."""
    values = np.asarray(array)
    if values.shape != shape or values.dtype.kind not in "fiu":
        raise RefusedError(
            Code.OUTPUT_REFUSED,
            f"{path.stem} must be numbers of shape {list(shape)}, got {values.dtype} {list(values.shape)}",
        )
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)
    if not np.isfinite(values).all():
        raise DivergedError(f"{path.stem} holds values that are NaN, infinite or beyond float32")
    write_array(values, path)


__all__ = ["Manifest", "RefusedError", "Session", "load_classes"]
