"""The search journal: append-only JSON records, each written whole or not at all, so that a killed search resumes."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from suite.errors import StoreError
from suite.seeds import canonical_json, content_hash

Record = dict[str, Any]


class Journal(Protocol):
    """Records by key. A record is final: the first one written under a key stays."""

    def get(self, key: str) -> Record | None:
        """The record, or None."""

    def put(self, key: str, record: Mapping[str, Any]) -> Record:
        """Write a record durably unless the key is taken; returns the record that the key holds then."""


class MemoryJournal:
    """A journal that lasts as long as the process: for tests and for searches too cheap to resume."""

    def __init__(self) -> None:
        self._records: dict[str, str] = {}

    def get(self, key: str) -> Record | None:
        """The record, or None."""
        text = self._records.get(key)
        return None if text is None else _parsed(text, key)

    def put(self, key: str, record: Mapping[str, Any]) -> Record:
        """Write a record unless the key is taken; returns the record that the key holds then."""
        return _parsed(self._records.setdefault(key, canonical_json(dict(record))), key)


class DirectoryJournal:
    """One file per record in a directory: written beside, flushed to disk, then linked under its name.

    The link fails if the name is taken, so two writers never replace each other's record.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(directory, error) from error

    def get(self, key: str) -> Record | None:
        """The record, or None. StoreError when its file cannot be read or holds no JSON object."""
        try:
            return _parsed(self._file(key).read_text("utf-8"), key)
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(
                f"The search journal cannot be read: {error}.", "Check the file and its folder."
            ) from error

    def put(self, key: str, record: Mapping[str, Any]) -> Record:
        """Write a record durably unless the key is taken; returns what the key holds then. StoreError when refused."""
        text = canonical_json(dict(record))
        try:
            self._write(self._file(key), text)
        except FileExistsError:
            text = self._file(key).read_text("utf-8")
        except OSError as error:
            raise _unwritable(self._directory, error) from error
        return _parsed(text, key)

    def _file(self, key: str) -> Path:
        return self._directory / f"{content_hash(key)}.json"

    def _write(self, file: Path, text: str) -> None:
        descriptor, name = tempfile.mkstemp(dir=self._directory, suffix=".part")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.link(name, file)
        finally:
            Path(name).unlink()
        folder = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _parsed(text: str, key: str) -> Record:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise StoreError(f"The journal record {key!r} is no JSON object.", "Delete its file; what it held is redone.")
    return value


def _unwritable(directory: Path, error: OSError) -> StoreError:
    message = f"The search journal in {directory} cannot be written: {error.strerror}."
    return StoreError(message, "Free space or choose a folder that you may write to.")
