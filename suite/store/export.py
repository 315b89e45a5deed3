"""Tables as files, in an order that does not depend on when rows came in."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from suite.errors import UsageError
from suite.store.database import reading, rows
from suite.store.files import TEMPORARY, storing, write_atomically
from suite.store.rows import Row
from suite.store.schema import TABLES, Column, Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Format: TypeAlias = Literal["parquet", "csv", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def export_tables(results: Path, form: Format, directory: Path, *, comparable: bool, timeout: float) -> list[Path]:
    """Write the tables of `results` to `directory`; see `Results.export`."""
    if form not in FORMATS:
        raise UsageError(f"There is no export format {form!r}.", f"Choose one of {', '.join(FORMATS)}.")
    files = []
    with reading(results, timeout, may_write_files=True) as connection:
        for table in TABLES:
            if comparable and not table.is_comparable:
                continue
            columns = [c for c in table.columns if c.kind.is_comparable or not comparable]
            path = directory / f"{table.name}.{form}"
            _WRITERS[form](connection, table, columns, path)
            files.append(path)
    return files


def _write_csv(connection: DuckDBPyConnection, table: Table, columns: list[Column], path: Path) -> None:
    found = [[row[c.name] for c in columns] for row in rows(connection, table)]
    write_atomically(path, csv_text([c.name for c in columns], found).encode())


def _write_json(connection: DuckDBPyConnection, table: Table, columns: list[Column], path: Path) -> None:
    write_atomically(path, json_text([_plain(row, columns) for row in rows(connection, table)]).encode())


def _write_parquet(connection: DuckDBPyConnection, table: Table, columns: list[Column], path: Path) -> None:
    names = ", ".join(f'"{c.name}"' for c in columns)
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        query = f'SELECT {names} FROM "{table.name}" ORDER BY {", ".join(table.key)}'  # noqa: S608
        connection.sql(query).write_parquet(str(temporary), compression="zstd")
        temporary.replace(path)


_WRITERS = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet}


def csv_text(header: list[str], table: list[list[Any]]) -> str:
    """RFC 4180 text. Text cells that a spreadsheet would take for a formula get an apostrophe in front."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerows([_cell(value) for value in row] for row in (header, *table))
    return stream.getvalue()


def json_text(value: Any) -> str:
    """Indented JSON; times as ISO 8601 in UTC."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=_iso) + "\n"


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value


def _plain(row: Row, columns: list[Column]) -> Row:
    return {c.name: json.loads(row[c.name]) if c.type == "JSON" and row[c.name] else row[c.name] for c in columns}


def _iso(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value.isoformat()}Z"
    raise TypeError(f"{type(value).__name__} has no JSON form")
