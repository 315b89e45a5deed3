"""Folders of plain files on their way between learners: copied on fresh inodes, hashed by content."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from suite.data import FIXED_TIME


def fresh(folder: Path) -> Path:
    """`folder`, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def copy_folder(source: Path, destination: Path) -> None:
    """Copy the files of a folder on inodes of their own, with neutral modes and times."""
    for file in sorted(source.iterdir()):
        target = destination / file.name
        shutil.copyfile(file, target)
        target.chmod(0o444)
        os.utime(target, (FIXED_TIME, FIXED_TIME))


def hash_folder(folder: Path) -> str:
    """sha256 over the names and contents of a folder's files."""
    total = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        with file.open("rb") as stream:
            total.update(f"{file.name}\0{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()
