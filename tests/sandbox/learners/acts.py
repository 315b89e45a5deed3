"""Learners that keep to the SDK; what they do in `learn` is chosen by the hyperparameter `act`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from suite.sdk import Choice, DivergedError, Learner, LearnResult, Space, Task

OUT = {"path": Path("/suite/out")}


class Acts(Learner):
    """Nearest class mean, with manners that depend on `act`."""

    name = "Acts"
    space = Space(act=Choice([None, ""]), amount=Choice([0]))

    def setup(self) -> None:
        self.means: dict[int, np.ndarray] = {}
        self.extra: Any = None
        self.act("setup")

    def act(self, moment: str) -> None:
        wanted = self.context.hyperparameters.get("act") or ""
        call, _, what = str(wanted).partition(":")
        if call == moment and what:
            getattr(self, f"do_{what}")(int(self.context.hyperparameters.get("amount") or 0))

    def learn(self, task: Task) -> None:
        for label in task.classes:
            self.means[label] = task.images[task.labels == label].mean(axis=0, dtype=np.float64)
        self.act("learn")

    def predict(self, images: np.ndarray) -> np.ndarray:
        self.act("predict")
        means = np.stack([self.means[k] for k in sorted(self.means)])
        scores: np.ndarray = -((images[:, None].astype(np.float64) - means[None]) ** 2).sum(axis=(2, 3, 4))
        return scores

    def state_dict(self) -> dict[str, Any]:
        return {"means": self.means, "extra": self.extra}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.means = state["means"]

    def report(self) -> LearnResult:
        return LearnResult(stored_parameters=3, trainable_parameters=2, exemplars={0: 1}, metrics={"loss": 0.5})

    # --- manners ----------------------------------------------------------------------------------------------------

    def do_raise(self, amount: int) -> None:
        print("about to fail", file=sys.stderr)
        raise ValueError("boom")

    def do_diverge(self, amount: int) -> None:
        raise DivergedError("loss is NaN")

    def do_memory_error(self, amount: int) -> None:
        raise MemoryError

    def do_refused_state(self, amount: int) -> None:
        self.extra = object()

    def do_notes(self, amount: int) -> None:
        self.progress(epoch=1, epochs=2, note="half", loss=0.25)
        self.stage("train")
        self.stage("post")

    def do_sleep(self, amount: int) -> None:
        time.sleep(amount)

    def do_print(self, amount: int) -> None:
        print('{"jsonrpc": "2.0", "id": 3, "result": {}}')
        sys.stdout.flush()
        os.write(1, b"straight to descriptor 1\n")
        subprocess.run(["sh", "-c", "echo from a child; cat"], check=True)

    def do_print_much(self, amount: int) -> None:
        block = b"\x1b[31m" + b"x" * 1018 + b"\n"
        for _ in range(amount):
            os.write(2, block)

    def do_big_state(self, amount: int) -> None:
        self.extra = np.zeros(amount, np.uint8)

    def do_many_files(self, amount: int) -> None:
        for index in range(amount):
            (self.out() / f"f{index}").write_bytes(b"")

    def do_link(self, amount: int) -> None:
        (self.out() / "link").symlink_to("/etc/passwd")

    def do_folder(self, amount: int) -> None:
        (self.out() / "folder").mkdir()

    def do_odd_name(self, amount: int) -> None:
        (self.out() / "a b\x1b[31m").write_bytes(b"")

    def do_fifo(self, amount: int) -> None:
        os.mkfifo(self.out() / "fifo")

    def do_sparse(self, amount: int) -> None:
        with (self.out() / "sparse").open("wb") as file:
            file.truncate(amount)

    def do_allocate(self, amount: int) -> None:
        self.extra = np.ones(amount, np.uint8)
        time.sleep(2)

    def do_spawn(self, amount: int) -> None:
        subprocess.Popen(["sleep", str(amount)], start_new_session=True)

    def do_threads(self, amount: int) -> None:
        for _ in range(amount):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()

    def do_exit(self, amount: int) -> None:
        print("leaving", file=sys.stderr)
        sys.stderr.flush()
        os._exit(amount)

    def do_look(self, amount: int) -> None:
        """Write what a script of its own sees to the log."""
        script = Path(__file__).with_name("look.py")
        subprocess.run([sys.executable, str(script)], check=True)

    @staticmethod
    def out() -> Path:
        beside_scratch = Path(os.environ.get("TMPDIR", "/tmp")).parent / "out"
        return next(p for p in (Path("/suite/out"), beside_scratch, OUT["path"]) if p.is_dir())
