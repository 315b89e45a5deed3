"""What goes into a cell: folders that are filled aside and appear whole, the same from inside whatever they hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from suite.sandbox.intake import FIXED_TIME, disk_errors
from suite.sandbox.interface import Inside, Launch

FOLDERS: Final = ("data", "state", "items")


def inside_folder(root: Path, launch: Launch) -> Inside:
    """The paths of a learner that sees the host's files, whose cell lies in `root`."""
    seen = root / "in"
    return Inside(
        data=str(seen / "data"),
        state=str(seen / "state"),
        items=str(seen / "items"),
        weights=str(launch.weights or root / "weights"),
        out=str(root / "out"),
    )


class Inbox:
    """`root/in` is what the learner sees, `root/staging` where a delivery is prepared: one file system, so that a
    rename moves it."""

    def __init__(self, root: Path) -> None:
        self.seen = root / "in"
        self._staging = root / "staging"
        with disk_errors("a cell's folder cannot be made"):
            self._staging.mkdir(mode=0o700, parents=True)
            self.seen.mkdir(mode=0o755)
            for name in FOLDERS:
                (self.seen / name).mkdir(mode=0o755)
                _fix(self.seen / name, 0o755)
            _fix(self.seen, 0o755)

    @contextmanager
    def stage(self, name: str) -> Iterator[Path]:
        """An empty folder to fill; on exit its files are read-only, with fixed times, on inodes of their own."""
        if name not in FOLDERS:
            raise ValueError(f"no input folder is called {name!r}")
        folder = self._staging / name
        with disk_errors(f"the learner's {name} cannot be written"):
            folder.mkdir(mode=0o700)
            yield folder
            _seal(folder)

    def deliver(self, staged: Path) -> None:
        """Show a staged folder to the learner, all at once. A folder is delivered once."""
        with disk_errors(f"the learner's {staged.name} cannot be delivered"):
            staged.rename(self.seen / staged.name)  # replaces the empty folder; a filled one is an OSError
            _fix(self.seen, 0o755)


def _seal(folder: Path) -> None:
    """Equal modes and times. Raises ValueError for what the harness must never deliver (hard links join containers)."""
    for path in folder.iterdir():
        if path.is_symlink() or not path.is_file() or path.stat().st_nlink != 1:
            raise ValueError(f"{path} is no regular file of its own")
        _fix(path, 0o444)
    _fix(folder, 0o755)


def _fix(path: Path, mode: int) -> None:
    path.chmod(mode)
    os.utime(path, (FIXED_TIME, FIXED_TIME))
