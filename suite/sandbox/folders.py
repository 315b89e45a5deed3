"""Where cells keep their files on this machine: one private folder for each, marked with the run that owns it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path

from suite.errors import InfrastructureError
from suite.sandbox.intake import disk_errors, remove_tree

_MARK = "labels.json"


class Folders:
    """The folders of one runtime under `root`; a temporary folder if it is None."""

    def __init__(self, root: Path | None, runtime: str) -> None:
        self._root = (root or Path(tempfile.gettempdir())).absolute() / f"continual-suite-{runtime}-{os.getuid()}"

    def make(self, labels: dict[str, str]) -> Path:
        """A new folder for a cell; its random name is the cell's name. Raises InfrastructureError."""
        with disk_errors("a cell's folder cannot be made"):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self._root.lstat()
            if status.st_uid != os.getuid() or self._root.is_symlink() or status.st_mode & 0o022:
                raise InfrastructureError(
                    f"{self._root} belongs to somebody else, or others may write to it.", "Remove it, or set TMPDIR."
                )
            folder = self._root / secrets.token_hex(8)
            folder.mkdir(mode=0o700)
            (folder / _MARK).write_text(json.dumps(labels))
        return folder

    def reap(self, is_dead: Callable[[dict[str, str]], bool]) -> int:
        """Remove the folders whose labels `is_dead` accepts; returns how many."""
        reaped = 0
        for mark in sorted(self._root.glob(f"*/{_MARK}")):
            with contextlib.suppress(OSError, ValueError):
                if is_dead(json.loads(mark.read_text())):
                    remove_tree(mark.parent)
                    reaped += 1
        return reaped

    def close(self) -> None:
        """Remove the root, unless a cell is left in it."""
        with contextlib.suppress(OSError):
            self._root.rmdir()
