"""A learner that takes the wire from the SDK when it is imported, and breaks the protocol in the way that it is told.

It answers `describe` and `setup` honestly; `setup` names the act for the next request.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

IN, OUT = 3, 4  # where the SDK has put the protocol's streams
MANIFEST = {"protocol": "1.0", "name": "Rogue", "space": {"act": {"kind": "choice", "values": [""], "when": {}}}}


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(OUT, view) :]


def send(message: Any) -> None:
    write(json.dumps(message).encode() + b"\n")


def answer(request: dict[str, Any], result: Any = None) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": {} if result is None else result})


def flood(block: bytes, descriptor: int = OUT) -> None:
    while True:
        os.write(descriptor, block)


NOTE = b'{"jsonrpc":"2.0","method":"progress","params":{"epoch":1}}\n'


def act(name: str, request: dict[str, Any]) -> None:
    number = request["id"]
    match name:
        case "wrong_id":
            send({"jsonrpc": "2.0", "id": 999, "result": {}})
        case "string_id":
            send({"jsonrpc": "2.0", "id": str(number), "result": {}})
        case "twice":
            write(2 * (json.dumps({"jsonrpc": "2.0", "id": number, "result": {}}).encode() + b"\n"))
        case "later_again":
            answer(request)
            time.sleep(0.3)
            answer(request)
        case "both":
            send({"jsonrpc": "2.0", "id": number, "result": {}, "error": {"code": -32000, "message": "x"}})
        case "neither":
            send({"jsonrpc": "2.0", "id": number})
        case "extra_field":
            send({"jsonrpc": "2.0", "id": number, "result": {}, "score": 1.0})
        case "deep":
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"a":' % number + b"[" * 100_000 + b"]" * 100_000 + b"}}\n")
        case "huge_number":
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"a":' % number + b"9" * 100_000 + b"}}\n")
        case "nan":
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"a":NaN}}\n' % number)
        case "not_json":
            write(b"hello\n")
        case "not_utf8":
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"a":"\xff"}}\n' % number)
        case "array":
            write(b"[]\n")
        case "no_newline":
            flood(b"x" * 65536)
        case "empty_lines":
            flood(b"\n" * 65536)
        case "notes":
            flood(NOTE * 1000)
        case "unknown_note":
            send({"jsonrpc": "2.0", "method": "score", "params": {}})
        case "request_back":
            send({"jsonrpc": "2.0", "id": 1, "method": "progress", "params": {}})
        case "stderr":
            flood(b"e" * 65536, 2)
        case "stderr_then_answer":
            for _ in range(400):
                os.write(2, b"e" * 65536)
            answer(request)
        case "exit_0":
            os._exit(0)
        case "half_line":
            write(b'{"jsonrpc":"2.0",')
            os._exit(0)
        case "kill_self":
            os.kill(os.getpid(), signal.SIGKILL)
        case "ignore_term":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        case "close_stdout":
            os.close(OUT)
            time.sleep(600)
        case "close_stdin":
            os.close(IN)
            time.sleep(600)
        case "answer_then_exit":
            answer(request)
            os._exit(0)
        case "odd_code":
            send({"jsonrpc": "2.0", "id": number, "error": {"code": 7, "message": "x"}})
        case "odd_text":
            text = "a\x1b[31mred\u202e" + "b" * 5000
            send({"jsonrpc": "2.0", "id": number, "error": {"code": -32000, "message": text[:1900]}})
        case "surrogate":
            send({"jsonrpc": "2.0", "id": number, "error": {"code": -32000, "message": "\ud800"}})
        case _:
            answer(request)


def serve() -> None:
    name = ""
    with os.fdopen(IN, "rb", closefd=False) as requests:
        for line in requests:
            request = json.loads(line)
            if request["method"] == "describe":
                answer(request, MANIFEST)
            elif request["method"] == "setup":
                name = request["params"]["hyperparameters"].get("act") or ""
                answer(request)
            else:
                act(name, request)
    sys.exit(0)


serve()
