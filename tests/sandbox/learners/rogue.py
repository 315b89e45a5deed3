"""A learner that takes the wire from the SDK when it is imported, and breaks the protocol in the way that it is told.

It answers `describe` and `setup` honestly; `setup` names the act for the next request.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

IN, OUT = 3, 4  # where the SDK has put the protocol's streams
MANIFEST = {"protocol": "1.0", "name": "Rogue", "space": {"act": {"kind": "choice", "values": [""], "when": {}}}}


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(OUT, view) :]


def send(message: Any) -> None:
    write(json.dumps(message).encode() + b"\n")


def answer(number: int, value: Any = None) -> None:
    send({"jsonrpc": "2.0", "id": number, "result": {} if value is None else value})


def flood(block: bytes, descriptor: int = OUT) -> None:
    while True:
        os.write(descriptor, block)


NOTE = b'{"jsonrpc":"2.0","method":"progress","params":{"epoch":1}}\n'


def error(number: int, text: str, code: int = -32000) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


def result(number: int, value: bytes) -> bytes:
    """An answer with a value that `json` would not write."""
    return b'{"jsonrpc":"2.0","id":%d,"result":{"a":' % number + value + b"}}\n"


def later_again(number: int) -> None:
    answer(number)
    time.sleep(0.3)
    answer(number)


def stderr_then_answer(number: int) -> None:
    for _ in range(400):
        os.write(2, b"e" * 65536)
    answer(number)


def answer_then_exit(number: int) -> None:
    answer(number)
    os._exit(0)


def half_line(number: int) -> None:
    write(b'{"jsonrpc":"2.0",')
    os._exit(0)


def ignore_term(number: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def close_and_sleep(descriptor: int) -> None:
    os.close(descriptor)
    time.sleep(600)


ACTS: dict[str, Callable[[int], Any]] = {
    "wrong_id": lambda _: answer(999),
    "string_id": lambda n: send({"jsonrpc": "2.0", "id": str(n), "result": {}}),
    "twice": lambda n: write(2 * (json.dumps({"jsonrpc": "2.0", "id": n, "result": {}}).encode() + b"\n")),
    "later_again": later_again,
    "both": lambda n: send({**error(n, "x"), "result": {}}),
    "neither": lambda n: send({"jsonrpc": "2.0", "id": n}),
    "extra_field": lambda n: send({"jsonrpc": "2.0", "id": n, "result": {}, "score": 1.0}),
    "deep": lambda n: write(result(n, b"[" * 100_000 + b"]" * 100_000)),
    "huge_number": lambda n: write(result(n, b"9" * 100_000)),
    "nan": lambda n: write(result(n, b"NaN")),
    "not_utf8": lambda n: write(result(n, b'"\xff"')),
    "not_json": lambda _: write(b"hello\n"),
    "array": lambda _: write(b"[]\n"),
    "no_newline": lambda _: flood(b"x" * 65536),
    "empty_lines": lambda _: flood(b"\n" * 65536),
    "notes": lambda _: flood(NOTE * 1000),
    "unknown_note": lambda _: send({"jsonrpc": "2.0", "method": "score", "params": {}}),
    "request_back": lambda _: send({"jsonrpc": "2.0", "id": 1, "method": "progress", "params": {}}),
    "stderr": lambda _: flood(b"e" * 65536, 2),
    "stderr_then_answer": stderr_then_answer,
    "exit_0": lambda _: os._exit(0),
    "half_line": half_line,
    "kill_self": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "ignore_term": ignore_term,
    "close_stdout": lambda _: close_and_sleep(OUT),
    "close_stdin": lambda _: close_and_sleep(IN),
    "answer_then_exit": answer_then_exit,
    "odd_code": lambda n: send(error(n, "x", 7)),
    "odd_text": lambda n: send(error(n, "a\x1b[31mred\u202e" + "b" * 1800)),
    "surrogate": lambda n: send(error(n, "\ud800")),
}


def serve() -> None:
    name = ""
    with os.fdopen(IN, "rb", closefd=False) as requests:
        for line in requests:
            request = json.loads(line)
            if request["method"] == "describe":
                answer(request["id"], MANIFEST)
            elif request["method"] == "setup":
                name = request["params"]["hyperparameters"].get("act") or ""
                answer(request["id"])
            else:
                perform: Callable[[int], Any] = ACTS.get(name, answer)
                perform(request["id"])
    sys.exit(0)


serve()
