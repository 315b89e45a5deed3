"""The loop inside a container: requests from stdin, answers to stdout, both moved away from author code first."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable
from inspect import isabstract
from pathlib import Path
from typing import Any, BinaryIO

from suite.protocol.errors import ProtocolError
from suite.protocol.framing import LineReader, decode, encode
from suite.protocol.messages import NOTE, Code, Response, RpcError
from suite.sdk.learner import Learner
from suite.sdk.session import Session

_PROGRESS_SECONDS = 0.05
"""Progress that comes faster than this is not sent: the harness refuses a flood, and nobody can read it."""


def take_over_stdio() -> tuple[BinaryIO, BinaryIO]:
    """The protocol's streams; afterwards fd 0 reads nothing and fd 1 writes to stderr, for C code and children too."""
    requests, answers = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def serve(load: Callable[[], type[Learner]], requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until `shutdown` or the end of the stream. `load` gives the learner class, once."""
    lock = threading.Lock()
    last_progress = -_PROGRESS_SECONDS

    def send(line: bytes) -> None:
        with lock:
            rest = line
            while rest:
                rest = rest[answers.write(rest) or 0 :]

    def notify(method: str, params: dict[str, Any]) -> None:
        nonlocal last_progress
        note = NOTE.validate_python({"jsonrpc": "2.0", "method": method, "params": params})
        if method == "progress":
            if time.monotonic() - last_progress < _PROGRESS_SECONDS:
                return
            last_progress = time.monotonic()
        send(encode(note))

    session = Session(load(), notify)
    reader = LineReader()
    while data := requests.read(1 << 16):
        for line in reader.feed(data):
            send(_answer(session, line))
            if session.is_over:
                return


def _answer(session: Session, line: bytes) -> bytes:
    try:
        message = decode(line)
    except ProtocolError as error:
        return encode(Response(id=None, error=RpcError(code=Code.PARSE, message=str(error))))
    response = session.handle(message)
    try:
        return encode(response)
    except ProtocolError as error:  # an answer that is too long
        return encode(Response(id=response.id, error=RpcError(code=Code.OUTPUT_REFUSED, message=str(error))))


def main(learner_class: type[Learner]) -> None:
    """Serve `learner_class`; `python -m suite.sdk module:Class` moves stdio even before the module is imported."""
    serve(lambda: learner_class, *take_over_stdio())


def load_class(target: str) -> type[Learner]:
    """The learner named by `module:Class` or `file.py:Class`. Raises ProtocolError with what is missing."""
    where, _, name = target.partition(":")
    if not where or not name:
        raise ProtocolError(f"{target!r} does not name a learner.", "Write module:Class or file.py:Class.")
    try:
        module = _load_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{where}.".startswith(f"{error.name}."):
            raise  # it is there, and imports something that is not
        raise ProtocolError(f"There is no module {where!r}.", "Run from the folder that holds it.") from error
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, Learner)):
        raise ProtocolError(f"{where!r} has no class {name!r} derived from suite.sdk.Learner.")
    if isabstract(found):
        raise ProtocolError(f"{name!r} does not write {', '.join(sorted(found.__abstractmethods__))}.")
    return found


def _load_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ProtocolError(f"There is no file {str(path)!r}.", "Give its path as seen from here.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
