"""The command line, run in this process through its real entry point."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


Suite = Callable[..., Ran]


@pytest.fixture
def suite(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Suite:
    from suite.cli import main

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["suite", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run
