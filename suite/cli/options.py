"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Results: TypeAlias = Annotated[
    Path, typer.Option("--results", envvar="SUITE_RESULTS", help="Folder of journals and database.")
]
DataRoot: TypeAlias = Annotated[
    Path | None, typer.Option("--data", envvar="SUITE_DATA", help="Folder of prepared data sets.")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Submissions: TypeAlias = Annotated[
    Path, typer.Option("--submissions", envvar="SUITE_SUBMISSIONS", help="Folder of submission manifests.")
]
DEFAULT_RESULTS = Path("results")
DEFAULT_SUBMISSIONS = Path("submissions")
