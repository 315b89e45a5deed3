"""The database holds what the journals hold, however often and whenever they are merged; readers and writers queue."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.errors import StoreError, UsageError
from suite.metrics import AccuracyCounts, afm, ala, average_accuracy, avg_acc, final_acc
from suite.protocol import Choice, Manifest, Space
from suite.status import Status
from suite.store import DATABASE, Journal, Machine, Results, Selection, TaskRecord, TrialRecord, merge, merge_run
from suite.store.locks import file_lock
from suite.store.rows import count_rows, run_record, run_row, task_rows, trial_record, trial_row
from tests.store.factory import SPACE, attempt, draw_points, info, lock, task_record, write_run
from tests.store.factory import trial_record as made_trial

HOSTILE = "=cmd()'\"; DROP TABLE runs; --<script>\n\t\u202e\U0001f600\x1b[31m\x00"


def tables(results: Path) -> dict[str, list[Any]]:
    found = {}
    with duckdb.connect(str(results / DATABASE), read_only=True) as connection:
        for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            found[name] = sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"').fetchall()))
    return found


def test_every_record_comes_back_from_the_database(tmp_path: Path) -> None:
    journal = write_run(tmp_path, failed={("tools", 0): Status.TIMED_OUT}, failed_draws=[1])
    journal.add_attempt(attempt(journal.trial_ids()[0]))
    merge(tmp_path)
    results = Results(tmp_path)
    (run,) = results.run_ids()
    stored = results.run(run)
    assert stored.info == journal.run()
    assert list(stored.trials) == journal.trials()
    assert list(stored.attempts) == journal.attempts(journal.trial_ids()[0])
    assert stored.selection == journal.selection()
    assert stored.entry == journal.entry()


def test_conditions_of_a_space_survive(tmp_path: Path) -> None:
    space = Space({"z": Choice(["step", "cosine"]), "a": Choice([2, 3], when={"z": ["step"]})})
    journal = write_run(tmp_path, manifest=Manifest(name="mine", space=space))
    merge(tmp_path)
    run = journal.run()
    assert run is not None
    assert Results(tmp_path).run(run.lock.id).info.lock.manifest.space == space


def test_merging_twice_changes_nothing(tmp_path: Path) -> None:
    write_run(tmp_path, "one")
    write_run(tmp_path, "two", failed_draws=[0, 1, 2])
    merge(tmp_path)
    before = tables(tmp_path)
    merge(tmp_path)
    assert tables(tmp_path) == before


def test_merging_after_every_trial_gives_what_merging_once_gives(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "whole")
    merge(tmp_path / "whole")
    grown = Journal(tmp_path / "grown" / "runs" / whole.directory.name)
    run = whole.run()
    assert run is not None
    grown.begin(run)
    for number, trial in enumerate(reversed(whole.trials())):
        grown.end_trial(trial)
        if number % 3 == 0:
            merge_run(tmp_path / "grown", grown)
    selection, entry = whole.selection(), whole.entry()
    assert selection is not None
    assert entry is not None
    grown.set_selection(selection)
    grown.set_entry(entry)
    merge(tmp_path / "grown")
    results = [Results(tmp_path / name) for name in ("whole", "grown")]
    files = [r.export("csv", r.directory / "csv", comparable=True) for r in results]
    assert [p.read_bytes() for p in files[0]] == [p.read_bytes() for p in files[1]]


def test_what_changed_in_the_journal_replaces_what_was_merged(tmp_path: Path) -> None:
    journal = write_run(tmp_path)
    merge(tmp_path)
    trial = journal.trials()[0]
    (journal.directory / "trials" / trial.id / "trial.json").unlink()
    again = trial.model_copy(update={"status": Status.CRASHED, "tasks": trial.tasks[:1], "message": "the second time"})
    journal.end_trial(again)
    selection = Selection(
        draw=None, hyperparameters=None, score=None, eligible_draws=0, draws=3, failure=Status.CRASHED
    )
    journal.set_selection(selection)
    merge(tmp_path)
    stored = Results(tmp_path).run(journal.directory.name)
    assert list(stored.trials) == journal.trials()
    assert again in stored.trials
    assert stored.selection == selection


def test_a_run_that_has_only_begun_is_there(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs" / lock().id)
    journal.begin(info(lock()))
    merge(tmp_path)
    stored = Results(tmp_path).run(lock().id)
    assert (stored.entry, stored.selection, list(stored.trials)) == (None, None, [])


def test_scores_follow_from_the_counts(tmp_path: Path) -> None:
    write_run(tmp_path, failed={("tools", 0): Status.CRASHED})
    merge(tmp_path)
    results = Results(tmp_path)
    scored = results.sql("SELECT trial, status, acc, avg_acc, aa, afm, ar, ala FROM trials").rows
    flat = results.sql("SELECT trial, task, correct, total FROM task_counts ORDER BY trial, task, tested").rows
    assert {status for _, status, *_ in scored} == {"ok", "crashed"}
    for trial, status, *scores in scored:
        if status != "ok":
            assert scores == [None] * 6
            continue
        correct = [[c for i, task, c, _ in flat if (i, task) == (trial, t)] for t in range(3)]
        total = [[n for i, task, _, n in flat if (i, task) == (trial, t)] for t in range(3)]
        counts = AccuracyCounts.from_rows(correct, total)
        assert scores[0] == sum(correct[2]) / sum(total[2])
        assert scores == [
            final_acc(counts), avg_acc(counts), average_accuracy(counts)[-1], afm(counts)[-1], -afm(counts)[-1],
            ala(counts)[-1],
        ]  # fmt: skip


def test_impossible_counts_are_refused_with_the_name_of_the_run(tmp_path: Path) -> None:
    journal = write_run(tmp_path)
    trial = journal.trials()[0]
    wrong = trial.tasks[0].model_copy(update={"correct": [1000]})
    (journal.directory / "trials" / trial.id / "trial.json").unlink()
    journal.end_trial(trial.model_copy(update={"tasks": [wrong]}))
    with pytest.raises(StoreError, match=f"run {journal.directory.name} holds impossible accuracy counts"):
        merge(tmp_path)
    assert Results(tmp_path).run_ids() == []


points = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    max_size=4,
)


@settings(max_examples=30)
@given(point=points, text=st.text(st.characters(codec="utf-8")), seed=st.integers(0, 5), tasks=st.integers(0, 4))
def test_rows_lose_nothing(point: dict[str, Any], text: str, seed: int, tasks: int) -> None:
    run = info(lock(hyperparameters=point), machine=Machine(cpu=text), argv=[text, ""], versions={text: text})
    assert run_record(run_row("r", run)) == run
    learned = [task_record(t, 0.7, random.Random(seed)) for t in range(tasks)]
    trial = made_trial(run.lock, "tuning", "toys-1", point, seed, draw=seed, message=text, log_tail=text)
    trial = trial.model_copy(update={"tasks": learned})
    counts: dict[int, list[Any]] = {}
    for row in count_rows("r", trial):
        counts.setdefault(row["task"], []).append(row)
    back = trial_record(run.lock, trial_row("r", trial, ""), task_rows("r", trial), counts)
    assert back == trial
    assert back.id == trial.id


def test_hostile_text_is_only_text(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs" / lock().id)
    journal.begin(info(lock(), argv=[HOSTILE], machine=Machine(gpu=HOSTILE)))
    base = task_record(0, 0.5, random.Random(0))
    task = TaskRecord(**(base.model_dump() | {"classes": [HOSTILE, ""], "metrics": {HOSTILE: 1.0}}))
    trial = TrialRecord(
        **(
            made_trial(lock(), "tuning", "toys-1", {"lr": HOSTILE}, 0).model_dump()
            | {"message": HOSTILE, "log_tail": HOSTILE, "tasks": [task]}
        )
    )
    journal.end_trial(trial)
    merge(tmp_path)
    stored = Results(tmp_path).run(lock().id)
    assert stored.info == journal.run()
    assert list(stored.trials) == [trial]


# --- reading ----------------------------------------------------------------------------------------------------------


def test_an_empty_folder_reads_as_empty_tables(tmp_path: Path) -> None:
    results = Results(tmp_path)
    assert results.run_ids() == []
    assert results.sql("SELECT count(*) FROM trials").rows == [(0,)]
    assert list(tmp_path.iterdir()) == []
    results.refresh()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="no run 'x'"):
        results.run("x")


def test_sql_gives_columns_and_rows(tmp_path: Path) -> None:
    write_run(tmp_path)
    merge(tmp_path)
    answer = Results(tmp_path).sql("SELECT phase, count(*) AS n FROM trials GROUP BY ALL ORDER BY ALL")
    assert (answer.columns, answer.rows) == (["phase", "n"], [("evaluation", 4), ("tuning", 6)])


@pytest.mark.parametrize("with_database", [True, False])
@pytest.mark.parametrize(
    "query",
    [
        "SELEC 1",
        "SELECT nothing FROM runs",
        "DELETE FROM runs",
        "CREATE TABLE x (y INTEGER)",
        "COPY runs TO '{folder}/stolen.csv'",
        "SELECT * FROM read_csv('{folder}/secret.csv')",
        "ATTACH '{folder}/other.duckdb'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
    ],
)
def test_a_query_reads_the_tables_and_nothing_else(tmp_path: Path, query: str, with_database: bool) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    if with_database:
        write_run(results)
        merge(results)
        before = tables(results)
        with pytest.raises(UsageError, match="The query failed"):
            Results(results).sql(query.format(folder=tmp_path))
        assert tables(results) == before
    elif not query.startswith(("DELETE", "CREATE")):  # there, nothing is stored that could be changed
        with pytest.raises(UsageError, match="The query failed"):
            Results(results).sql(query.format(folder=tmp_path))
    assert sorted(f.name for f in tmp_path.iterdir()) == ["results", "secret.csv"]


# --- queueing ---------------------------------------------------------------------------------------------------------


def test_a_database_that_stays_locked_is_a_store_error(tmp_path: Path) -> None:
    journal = write_run(tmp_path)
    merge(tmp_path)
    with file_lock(tmp_path / f"{DATABASE}.lock", 1):
        with pytest.raises(StoreError, match="locked by process"):
            merge_run(tmp_path, journal, timeout=0.1)
        with pytest.raises(StoreError, match="locked by process"):
            Results(tmp_path, timeout=0.1).run_ids()


def test_another_program_on_the_file_is_waited_for_and_then_named(tmp_path: Path) -> None:
    write_run(tmp_path)
    merge(tmp_path)
    code = "import duckdb, sys, time; c = duckdb.connect(sys.argv[1]); print('open', flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / DATABASE)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match="locked by another program"):
            Results(tmp_path, timeout=0.3).run_ids()
        timer = threading.Timer(0.3, other.kill)
        timer.start()
        assert len(Results(tmp_path, timeout=10).run_ids()) == 1
        timer.join()


def test_readers_and_writers_take_turns(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "whole")
    journal = Journal(tmp_path / "runs" / whole.directory.name)
    run = whole.run()
    assert run is not None
    journal.begin(run)
    merge(tmp_path)
    seen: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(Results(tmp_path).sql("SELECT count(*) FROM trials").rows[0][0])

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for trial in whole.trials()[:4]:
            journal.end_trial(trial)
            merge_run(tmp_path, journal)
    finally:
        done.set()
        reader.join()
    assert seen == sorted(seen)
    assert Results(tmp_path).sql("SELECT count(*) FROM trials").rows == [(4,)]


_MERGER = """
import sys
from pathlib import Path
from suite.store import Journal, merge_run
import suite.store.merging as merging
results, run = Path(sys.argv[1]), sys.argv[2]
merging._BATCH = 1
original = merging.insert
def slow(connection, table, rows):
    original(connection, table, rows)
    print(table.name, flush=True)
merging.insert = slow
merge_run(results, Journal(results / "runs" / run))
"""


@pytest.mark.parametrize("after", [2, 20])
def test_a_merge_killed_in_the_middle_is_as_if_it_had_not_begun(tmp_path: Path, after: int) -> None:
    write_run(tmp_path, "one")
    merge(tmp_path)
    journal = write_run(tmp_path, "two")
    with subprocess.Popen(
        [sys.executable, "-c", _MERGER, str(tmp_path), journal.directory.name], stdout=subprocess.PIPE, text=True
    ) as merger:
        assert merger.stdout is not None
        for _ in range(after):
            merger.stdout.readline()
        os.kill(merger.pid, signal.SIGKILL)
    results = Results(tmp_path)
    assert len(results.run_ids()) == 1
    assert results.sql("SELECT count(*) FROM trials").rows == [(10,)]
    results.refresh()
    assert len(results.run_ids()) == 2
    assert results.sql("SELECT count(*), count(DISTINCT trial) FROM trials").rows == [(20, 20)]


def test_a_damaged_database_is_rebuilt_after_it_is_deleted(tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / DATABASE).write_bytes(b"this is no database" * 1000)
    with pytest.raises(StoreError) as caught:
        merge(tmp_path)
    assert "rebuilt from the journals" in caught.value.remedy
    with pytest.raises(StoreError):
        Results(tmp_path).run_ids()
    (tmp_path / DATABASE).unlink()
    merge(tmp_path)
    assert len(Results(tmp_path).run_ids()) == 1


def test_tables_of_another_version_are_not_touched(tmp_path: Path) -> None:
    write_run(tmp_path)
    merge(tmp_path)
    with duckdb.connect(str(tmp_path / DATABASE)) as connection:
        connection.execute("UPDATE schema_version SET version = 99")
    with pytest.raises(StoreError, match="tables of version 99"):
        merge(tmp_path)
    with pytest.raises(StoreError, match="tables of version 99"):
        Results(tmp_path).run_ids()


def test_a_database_of_something_else_is_not_taken_for_ours(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / DATABASE)) as connection:
        connection.execute("CREATE TABLE cats (name VARCHAR)")
    with pytest.raises(StoreError, match="tables of version none"):
        Results(tmp_path).run_ids()


def test_unwritable_results_are_a_store_error(tmp_path: Path) -> None:
    journal = write_run(tmp_path)
    (tmp_path / DATABASE).mkdir()
    with pytest.raises(StoreError, match=DATABASE):
        merge_run(tmp_path, journal)


def test_the_space_is_queryable_as_json(tmp_path: Path) -> None:
    write_run(tmp_path)
    merge(tmp_path)
    ((space, lr),) = (
        Results(tmp_path)
        .sql("SELECT manifest->'space', (SELECT min((hyperparameters->>'lr')::DOUBLE) FROM trials) FROM runs")
        .rows
    )
    assert json.loads(space) == SPACE.model_dump(mode="json")
    assert lr == draw_points(1)[0]["lr"]
