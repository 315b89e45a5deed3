"""`python -m suite.sdk` as a real child: nothing but the protocol reaches the protocol's stream."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from suite.protocol import ProtocolError
from suite.protocol.limits import MAX_FRAME_BYTES
from suite.sdk import Learner
from suite.sdk.server import load_class, serve

NOISY = '''
import ctypes, os, subprocess, sys, threading
import numpy as np
from suite.sdk import Choice, Learner, Space, main

def shout(where):
    print(f"python {where}")
    print(f"__stdout__ {where}", file=sys.__stdout__, flush=True)
    os.write(1, f"fd {where}\\n".encode())
    libc = ctypes.CDLL(None)
    libc.puts(f"puts {where}".encode())
    libc.fflush(None)
    subprocess.run(["echo", f"child {where}"], check=True)

shout("import")

class Noisy(Learner):
    def setup(self):
        shout("setup")
        assert os.read(0, 10) == b""  # stdin is empty for the author's code
        assert subprocess.run(["cat"], capture_output=True, check=True).stdout == b""
    def learn(self, task):
        shout("learn")
        threads = [threading.Thread(target=lambda: [self.progress(i) for i in range(500)]) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.stage("post")
    def predict(self, images): return np.zeros((len(images), 1))
    def state_dict(self): return {}
    def load_state_dict(self, state): pass

class Wide(Noisy):
    """Its manifest does not fit into a frame."""
    space = Space({f"x{i}": Choice([f"{j}" + "y" * 1990 for j in range(256)]) for i in range(4)})

if __name__ == "__main__":
    main(Noisy)
'''
DESCRIBE = b'{"jsonrpc":"2.0","id":1,"method":"describe","params":{}}\n'
SETUP = b'{"jsonrpc":"2.0","id":2,"method":"setup","params":{"image":{"height":2,"width":2},"learner_seed":1}}\n'
SHUTDOWN = b'{"jsonrpc":"2.0","id":9,"method":"shutdown","params":{}}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import numpy as np

    (tmp_path / "noisy.py").write_text(NOISY)
    (tmp_path / "data").mkdir()
    (tmp_path / "out").mkdir()
    np.save(tmp_path / "data" / "00000.npy", np.zeros((2, 2, 2, 3), np.uint8))
    return tmp_path


def run(folder: Path, requests: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, *(arguments or ("-m", "suite.sdk", "noisy:Noisy"))]
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        command, input=requests, capture_output=True, cwd=folder, env={**os.environ, "PYTHONPATH": root}, timeout=60
    )


def learn(folder: Path) -> bytes:
    params = {"task": 0, "classes": [0], "data": str(folder / "data"), "out": str(folder / "out")}
    return json.dumps({"jsonrpc": "2.0", "id": 3, "method": "learn", "params": params}).encode() + b"\n"


@pytest.mark.parametrize("arguments", [("-m", "suite.sdk", "noisy:Noisy"), ("-m", "suite.sdk", "noisy.py:Noisy")])
def test_whatever_is_printed_goes_to_stderr(arguments: tuple[str, ...], folder: Path) -> None:
    done = run(folder, DESCRIBE + SETUP + learn(folder) + SHUTDOWN, *arguments)
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    answers = [m for m in messages if "id" in m]
    assert [(m["id"], "result" in m) for m in answers] == [(1, True), (2, True), (3, True), (9, True)]
    noise = done.stderr.decode().splitlines()
    for where in ("import", "setup", "learn"):
        assert {f"{who} {where}" for who in ("python", "__stdout__", "fd", "puts", "child")} <= set(noise)


def test_a_flood_of_progress_is_thinned_and_never_torn(folder: Path) -> None:
    done = run(folder, SETUP + learn(folder) + SHUTDOWN)
    notes = [m for m in map(json.loads, done.stdout.splitlines()) if "id" not in m]
    progress = [m for m in notes if m["method"] == "progress"]
    assert 1 <= len(progress) < 500  # of 2,000; the harness takes no more than 100 a second
    assert notes[-1] == {"jsonrpc": "2.0", "method": "stage", "params": {"stage": "post"}}


def test_main_serves_too_but_what_the_module_prints_at_import_comes_before_it(folder: Path) -> None:
    done = run(folder, DESCRIBE + SETUP + SHUTDOWN, "noisy.py")
    lines = [line for line in done.stdout.splitlines() if line.startswith(b"{")]
    assert [json.loads(line)["id"] for line in lines] == [1, 2, 9]
    assert b"setup" not in done.stdout


def test_the_end_of_the_stream_ends_the_learner(folder: Path) -> None:
    assert run(folder, b"").returncode == 0
    done = run(folder, DESCRIBE + b'{"jsonrpc":"2.0","id":2')
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1


def test_nothing_is_answered_after_shutdown(folder: Path) -> None:
    assert len(run(folder, SHUTDOWN + DESCRIBE).stdout.splitlines()) == 1


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"\xff", b'{"a":NaN}', b"[" * 100, b'{"a":1,"a":1}'])
def test_a_malformed_frame_is_answered_without_an_id_and_the_loop_goes_on(line: bytes) -> None:
    answers = conversation(line + b"\n" + DESCRIBE)
    assert (answers[0]["id"], answers[0]["error"]["code"]) == (None, -32700)
    assert answers[1]["id"] == 1


class Quiet(Learner):
    """Does nothing."""

    def learn(self, task: Any) -> None: ...
    def predict(self, images: Any) -> Any: ...
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def conversation(requests: bytes) -> list[dict[str, Any]]:
    answers = io.BytesIO()
    serve(lambda: Quiet, io.BytesIO(requests), answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_answers_that_are_written_in_pieces_arrive_whole() -> None:
    class Dribble(io.BytesIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:7])

    answers = Dribble()
    serve(lambda: Quiet, io.BytesIO(DESCRIBE * 3), answers)
    assert [json.loads(line)["id"] for line in answers.getvalue().splitlines()] == [1, 1, 1]


def test_a_frame_over_the_limit_ends_the_loop_with_an_error() -> None:
    with pytest.raises(ProtocolError, match="exceeds the limit"):
        conversation(b"x" * (MAX_FRAME_BYTES + 1))


def test_an_answer_over_the_limit_is_refused_not_lost(folder: Path) -> None:
    done = run(folder, DESCRIBE + SHUTDOWN, "-m", "suite.sdk", "noisy:Wide")
    first, last = map(json.loads, done.stdout.splitlines())
    assert (first["id"], first["error"]["code"]) == (1, -32004)
    assert "exceeds the limit" in first["error"]["message"]
    assert last["id"] == 9


# --- finding the class ----------------------------------------------------------------------------------------------

BROKEN = {
    "helper.py": "import a_module_that_is_not_there",
    "reads.py": "open('a file that is not there')",
    "half.py": "from suite.sdk import Learner\nclass Half(Learner):\n    def learn(self, task): ...\n",
    "other.py": "class Other: ...\nnumber = 3",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in BROKEN:
        monkeypatch.delitem(sys.modules, Path(name).stem, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("", "does not name a learner"),
        ("module", "does not name a learner"),
        (":Class", "does not name a learner"),
        ("module:", "does not name a learner"),
        ("nowhere:Class", "There is no module 'nowhere'"),
        ("nowhere.inner:Class", "There is no module 'nowhere.inner'"),
        ("suite.nowhere:Class", "There is no module 'suite.nowhere'"),
        ("nowhere.py:Class", "There is no file 'nowhere.py'"),
        ("other:Missing", "has no class 'Missing'"),
        ("other:Other", "has no class 'Other'"),
        ("other.py:number", "has no class 'number'"),
        ("half:Half", "'Half' does not write load_state_dict, predict, state_dict"),
        ("half.py:Learner", "does not write"),
    ],
)
def test_what_is_no_learner_is_named(target: str, complaint: str, here: Path) -> None:
    with pytest.raises(ProtocolError) as caught:
        load_class(target)
    assert complaint in str(caught.value)


def test_what_the_authors_module_lacks_is_not_hidden(here: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        load_class("helper:Class")
    with pytest.raises(FileNotFoundError, match="a file that is not there"):
        load_class("reads:Class")


def test_a_wrong_target_gives_one_line(folder: Path) -> None:
    done = run(folder, b"", "-m", "suite.sdk", "noisy:Nobody")
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.decode().splitlines()[-1].startswith("'noisy' has no class 'Nobody'")
    assert b"Traceback" not in done.stderr
    assert run(folder, b"", "-m", "suite.sdk").stderr.startswith(b"usage:")
