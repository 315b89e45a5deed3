"""How commands print: JSON, or a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import typer


def print_json(value: Any) -> None:
    """`value` as indented JSON."""
    import json

    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """A table as wide as its text needs on a pipe, and as the terminal allows on a terminal."""
    import sys

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else 200).print(table)
