"""Exports: the same rows in the same order whenever they came in, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any, cast, get_args

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.errors import UsageError
from suite.status import Status
from suite.store import FORMATS, Format, Journal, Results, markdown, merge
from suite.store.export import csv_text
from suite.store.schema import TABLES, Kind
from tests.store.factory import START, attempt, info, write_run


def export(results: Path, form: Format, *, comparable: bool = False) -> dict[str, bytes]:
    folder = results / f"{form}-{comparable}"
    return {p.name: p.read_bytes() for p in Results(results).export(form, folder, comparable=comparable)}


def read(form: Format, data: bytes) -> list[dict[str, Any]]:
    if form == "parquet":
        return list(pq.read_table(io.BytesIO(data)).to_pylist())
    return list(csv.DictReader(io.StringIO(data.decode()))) if form == "csv" else list(json.loads(data))


@pytest.mark.parametrize("form", get_args(Format))
def test_every_table_and_row_is_exported(tmp_path: Path, form: Format) -> None:
    write_run(tmp_path)
    merge(tmp_path)
    files = export(tmp_path, form)
    assert sorted(files) == sorted(f"{t.name}.{form}" for t in TABLES)
    rows = read(form, files[f"task_counts.{form}"])
    stored = Results(tmp_path).sql("SELECT trial, task, tested, correct FROM task_counts ORDER BY ALL").rows
    assert [(r["trial"], int(r["task"]), int(r["tested"]), int(r["correct"])) for r in rows] == stored


def test_floats_are_written_unrounded(tmp_path: Path) -> None:
    write_run(tmp_path)
    merge(tmp_path)
    stored = [acc for (acc,) in Results(tmp_path).sql("SELECT acc FROM trials ORDER BY run, trial").rows]
    files = export(tmp_path, "csv") | export(tmp_path, "json")
    assert [float(r["acc"]) for r in csv.DictReader(io.StringIO(files["trials.csv"].decode()))] == stored
    assert [r["acc"] for r in json.loads(files["trials.json"])] == stored


@pytest.mark.parametrize("form", get_args(Format))
def test_a_disturbed_run_exports_the_same_but_for_clocks_and_resources(tmp_path: Path, form: Format) -> None:
    calm = write_run(tmp_path / "calm", failed={("tools", 1): Status.CRASHED})
    merge(tmp_path / "calm")
    rough = Journal(tmp_path / "rough" / "runs" / calm.directory.name)
    run = calm.run()
    assert run is not None
    rough.begin(info(run.lock, START + timedelta(days=1), argv=["other"], is_dirty=True))
    for trial in reversed(calm.trials()):
        rough.add_attempt(attempt(trial.id))
        slow = [
            t.model_copy(update={"resources": t.resources.model_copy(update={"train_seconds": 99.0})})
            for t in trial.tasks
        ]
        moved = {"started_at": START + timedelta(days=2), "attempts": 2, "tasks": slow, "log_tail": "elsewhere"}
        rough.end_trial(trial.model_copy(update=moved))
    selection, entry = calm.selection(), calm.entry()
    assert selection is not None
    assert entry is not None
    rough.set_selection(selection)
    rough.set_entry(entry)
    merge(tmp_path / "rough")
    first, second = (export(tmp_path / name, form, comparable=True) for name in ("calm", "rough"))
    assert first == second
    assert f"attempts.{form}" not in first
    assert export(tmp_path / "calm", form) != export(tmp_path / "rough", form)


def test_a_wrong_count_shows_in_the_comparable_export(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one")
    two = write_run(tmp_path / "two")
    trial = two.trials()[0]
    last = trial.tasks[-1]
    changed = last.model_copy(update={"correct": [last.correct[0] - 1, *last.correct[1:]]})
    (two.directory / "trials" / trial.id / "trial.json").unlink()
    two.end_trial(trial.model_copy(update={"tasks": [*trial.tasks[:-1], changed]}))
    assert one.trials() != two.trials()
    for name in ("one", "two"):
        merge(tmp_path / name)
    assert export(tmp_path / "one", "csv", comparable=True) != export(tmp_path / "two", "csv", comparable=True)


def test_an_unknown_format_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="xlsx"):
        Results(tmp_path).export(cast("Format", "xlsx"), tmp_path / "out")
    assert FORMATS == ("parquet", "csv", "json")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00")))
def test_no_text_cell_reads_as_a_formula(text: str) -> None:
    ((cell, number),) = list(csv.reader(io.StringIO(csv_text([text], [[text, -1.5]]), newline="")))[1:]
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert cell.removeprefix("'") == text.removeprefix("'") or cell == text
    assert number == "-1.5"


def test_the_documentation_is_what_the_schema_says() -> None:
    text = markdown()
    assert (Path(__file__).parents[2] / "docs" / "store.md").read_text(encoding="utf-8") == text
    for table in TABLES:
        assert f"## {table.name}\n" in text
        for column in table.columns:
            assert f"| {column.name} | {column.type} | {column.kind.value} | {column.meaning} |" in text
    assert all(kind.meaning in text for kind in Kind)
