"""The DuckDB file of a results folder: opened briefly, under a lock file (DESIGN 4).

DuckDB lets one process write and then nobody else read, so every use is open, work, close; the lock file makes users
queue instead of fail. The file is derived: it can be deleted and is rebuilt from the journals.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.errors import StoreError
from suite.store.locks import file_lock
from suite.store.rows import Row
from suite.store.schema import SCHEMA_VERSION, TABLES, Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DATABASE = "suite.duckdb"
TIMEOUT_SECONDS = 30.0

_POLL_SECONDS = 0.1
_OFFLINE = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_SMALL = {"threads": "1", "memory_limit": "256MB", **_OFFLINE}
_CLOSED = {"enable_external_access": "false", "lock_configuration": "true", **_OFFLINE}
_REBUILD = "Delete it: it is rebuilt from the journals, which hold everything."


@contextmanager
def writing(results: Path, timeout: float = TIMEOUT_SECONDS) -> Iterator[DuckDBPyConnection]:
    """One transaction on the database of `results`: committed at the end, undone by an error.

    Raises StoreError if it is locked for longer than `timeout` seconds, unwritable or damaged.
    """
    import duckdb

    path = results / DATABASE
    with _locked(results, timeout, shared=False):
        connection = _connect(path, timeout, read_only=False, config=_SMALL)
        try:
            _prepare(connection, path)
            connection.begin()
            yield connection
            connection.commit()
        except duckdb.Error as error:
            raise StoreError(f"{path} cannot be written: {_first_line(error)}.", f"Free space. {_REBUILD}") from error
        finally:
            connection.close()  # an open transaction is undone


@contextmanager
def reading(
    results: Path, timeout: float = TIMEOUT_SECONDS, *, may_write_files: bool = False
) -> Iterator[DuckDBPyConnection]:
    """The database of `results`, read-only; empty where there is none yet.

    Queries reach no other file unless `may_write_files`. Raises StoreError if the database is locked for longer than
    `timeout` seconds, or damaged.
    """
    import duckdb

    path = results / DATABASE
    config = _OFFLINE if may_write_files else _CLOSED
    with ExitStack() as stack:
        if path.exists():
            stack.enter_context(_locked(results, timeout, shared=True))
            connection = stack.enter_context(_connect(path, timeout, read_only=True, config=config))
        if not path.exists() or _is_new(connection, path):
            connection = stack.enter_context(duckdb.connect(":memory:", config=dict(config)))
            _prepare(connection, path)
        yield connection


def rows(connection: DuckDBPyConnection, table: Table, where: str = "true", values: Sequence[Any] = ()) -> list[Row]:
    """Rows of a table in the order of its key."""
    columns = ", ".join(f'"{name}"' for name in table.names)
    query = f'SELECT {columns} FROM "{table.name}" WHERE {where} ORDER BY {", ".join(table.key)}'  # noqa: S608
    return [dict(zip(table.names, row, strict=True)) for row in connection.execute(query, list(values)).fetchall()]


def insert(connection: DuckDBPyConnection, table: Table, new: Sequence[Row]) -> None:
    """Append rows, all columns at once: ten times faster than one by one."""
    if not new:
        return
    columns = ", ".join(f"unnest(CAST(? AS {c.type}[]))" for c in table.columns)
    values = [[row[name] for row in new] for name in table.names]
    connection.execute(f'INSERT INTO "{table.name}" SELECT {columns}', values)


@contextmanager
def _locked(results: Path, timeout: float, *, shared: bool) -> Iterator[None]:
    """Queue, then enter: who queues keeps later readers out, so that a stream of them never starves a writer."""
    if shared and not os.access(results, os.W_OK):
        yield  # a published folder that nobody can write needs no lock, and cannot have one
        return
    with ExitStack() as entered:
        with file_lock(results / f"{DATABASE}.queue", timeout, what="The results database"):
            lock = file_lock(results / f"{DATABASE}.lock", timeout, shared=shared, what="The results database")
            entered.enter_context(lock)
        yield


def _connect(path: Path, timeout: float, *, read_only: bool, config: dict[str, str]) -> DuckDBPyConnection:
    """Open the file; another program, which knows nothing of the lock file, may have it for a while."""
    import duckdb

    deadline = time.monotonic() + timeout
    while True:
        try:
            return duckdb.connect(str(path), read_only=read_only, config=dict(config))
        except duckdb.IOException as error:
            if "lock on file" not in str(error):
                raise StoreError(f"{path} cannot be opened: {_first_line(error)}.", _REBUILD) from error
            if time.monotonic() >= deadline:
                raise StoreError(
                    f"{path} is locked by another program.", "Close what has it open, and try again."
                ) from error
            time.sleep(_POLL_SECONDS)
        except duckdb.Error as error:
            raise StoreError(f"{path} is damaged: {_first_line(error)}.", _REBUILD) from error


def _prepare(connection: DuckDBPyConnection, path: Path) -> None:
    """Create the tables in a new database, all or none. StoreError if it holds others."""
    if not _is_new(connection, path):
        return
    connection.begin()
    connection.execute("CREATE TABLE schema_version (version INTEGER)")
    connection.execute("INSERT INTO schema_version VALUES (?)", [SCHEMA_VERSION])
    for table in TABLES:
        connection.execute(table.ddl)
    connection.commit()


def _is_new(connection: DuckDBPyConnection, path: Path) -> bool:
    """Whether the database has no tables yet. StoreError if it has others than these."""
    tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if not tables:
        return True
    versions = connection.execute("FROM schema_version").fetchall() if "schema_version" in tables else []
    if versions != [(SCHEMA_VERSION,)]:
        found = versions[0][0] if versions else "none"
        raise StoreError(f"{path} has tables of version {found}; this suite has version {SCHEMA_VERSION}.", _REBUILD)
    return False


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")
