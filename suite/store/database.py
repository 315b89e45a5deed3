"""The DuckDB file of a results folder: opened briefly, under a lock file (DESIGN 4).

DuckDB lets one process write and then nobody else read, so every use is open, work, close; the lock file makes users
queue instead of fail. The file is derived: it can be deleted and is rebuilt from the journals.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
            connection.begin()
            _prepare(connection, path)
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
    path = results / DATABASE
    config = _OFFLINE if may_write_files else _CLOSED
    if not path.is_file():
        with _empty(config) as connection:
            yield connection
        return
    with _locked(results, timeout, shared=True):
        connection = _connect(path, timeout, read_only=True, config=config)
        try:
            _check_version(connection, path)
            yield connection
        finally:
            connection.close()


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
    path = results / f"{DATABASE}.lock"
    if shared and not os.access(results, os.W_OK):
        yield  # a published folder that nobody can write needs no lock, and cannot have one
        return
    with file_lock(path, timeout, shared=shared, what="The results database"):
        yield


@contextmanager
def _empty(config: dict[str, str]) -> Iterator[DuckDBPyConnection]:
    import duckdb

    with duckdb.connect(":memory:", config=dict(config)) as connection:
        _prepare(connection, Path(":memory:"))
        yield connection


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
    known = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'schema_version'").fetchall()
    if known:
        _check_version(connection, path)
        return
    connection.execute("CREATE TABLE schema_version (version INTEGER)")
    connection.execute("INSERT INTO schema_version VALUES (?)", [SCHEMA_VERSION])
    for table in TABLES:
        connection.execute(table.ddl)


def _check_version(connection: DuckDBPyConnection, path: Path) -> None:
    import duckdb

    try:
        found = connection.execute("SELECT version FROM schema_version").fetchall()
    except duckdb.CatalogException:
        found = []
    if found != [(SCHEMA_VERSION,)]:
        version = found[0][0] if found else "none"
        raise StoreError(f"{path} has tables of version {version}; this suite has version {SCHEMA_VERSION}.", _REBUILD)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")
