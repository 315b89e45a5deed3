"""`suite results`: show, sql, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from suite.cli.options import DEFAULT_RESULTS, Json, Results
from suite.cli.output import print_json, print_table

if TYPE_CHECKING:
    from suite.store import Results as Store
    from suite.store.board import Board, Standing
    from suite.store.summary import SetSummary

app = typer.Typer(no_args_is_help=True, help="Stored results; usable while a submission runs.")


@app.command()
def show(
    track: Annotated[str | None, typer.Argument(help="Only this track.")] = None,
    results: Results = DEFAULT_RESULTS,
    json: Json = False,
) -> None:
    """Print the ranking of each track."""
    from suite.store import Results as Store

    store = Store(results)
    if json:
        print_json([_board_json(board) for board in _boards(store, track)])
    else:
        print_ranking(store, track)


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="A query; docs/store.md describes the tables.")],
    results: Results = DEFAULT_RESULTS,
    json: Json = False,
) -> None:
    """Run a read-only query."""
    from suite.store import Results as Store

    store = Store(results)
    store.refresh()
    answer = store.sql(query)
    if json:
        print_json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    else:
        print_table(answer.columns, answer.rows)


@app.command()
def export(
    out: Annotated[Path, typer.Argument(help="Folder to write, one file a table.")],
    results: Results = DEFAULT_RESULTS,
    form: Annotated[str, typer.Option("--format", help="parquet, csv or json.")] = "parquet",
    comparable: Annotated[
        bool, typer.Option("--comparable", help="Leave out clocks, resources, machine and words.")
    ] = False,
) -> None:
    """Write all tables as files, rows in the order of their keys."""
    from suite.errors import UsageError
    from suite.store import FORMATS
    from suite.store import Results as Store

    chosen = next((f for f in FORMATS if f == form), None)
    if chosen is None:
        raise UsageError(f"There is no format {form!r}.", f"Choose one of {', '.join(FORMATS)}.")
    store = Store(results)
    store.refresh()
    for path in store.export(chosen, out, comparable=comparable):
        typer.echo(str(path))


def print_ranking(store: Store, track: str | None) -> None:
    """The boards as tables: percent, mean and standard deviation over seeds."""
    boards = _boards(store, track)
    if not boards:
        typer.echo(f"No results in {store.directory} yet." if track is None else f"No results on {track} yet.")
    for board in boards:
        sets = [e.data_set for e in board.track.evaluation]
        mark = " (reduced)" if board.track.is_reduced else ""
        print_table(
            ["rank", "submission", *(f"{s}: Acc / AvgAcc" for s in sets), "tuning Acc", "parameters", "s", "note"],
            (_row(standing) for standing in board.standings),
            title=f"{board.track.name}{mark}: {board.track.title}",
        )


def _boards(store: Store, track: str | None) -> list[Board]:
    from suite.store.board import boards
    from suite.store.summary import summarise_run

    store.refresh()
    found = boards([summarise_run(store.run(run)) for run in store.run_ids()])
    return [b for b in found if track is None or b.track.name == track]


def _row(standing: Standing) -> list[object]:
    entry = standing.summary
    parameters = entry.evaluation[0].tasks[-1].stored_parameters if entry.evaluation[0].tasks else None
    seconds = entry.learn_seconds
    return [
        standing.rank or "-",
        entry.info.lock.submission,
        *(_cell(result) for result in entry.evaluation),
        _percent(entry.tuning.acc) if entry.tuning else "-",
        f"{parameters:,.0f}" if parameters is not None else "-",
        f"{seconds:.1f}" if seconds is not None else "-",
        "; ".join(entry.unranked_because),
    ]


def _cell(result: SetSummary) -> str:
    if result.acc is None:
        return result.status.look.text
    return f"{_percent(result.acc)} / {_percent(result.avg_acc)}"


def _percent(summary: Any) -> str:
    if summary is None:
        return "-"
    spread = f" ± {summary.std * 100:.2f}" if summary.std is not None else ""
    return f"{summary.mean * 100:.2f}{spread}"


def _board_json(board: Board) -> dict[str, Any]:
    return {
        "track": board.track.name,
        "track_hash": board.track_hash,
        "version": board.version,
        "standings": [
            {
                "rank": s.rank,
                "tuning_rank": s.tuning_rank,
                "submission": s.summary.info.lock.submission,
                "run": s.summary.run,
                "unranked_because": list(s.summary.unranked_because),
                "learn_seconds": s.summary.learn_seconds,
                "evaluation": {
                    r.data_set: {
                        "status": r.status.value,
                        "acc": _json(r.acc),
                        "avg_acc": _json(r.avg_acc),
                        "score": r.score,
                    }
                    for r in s.summary.evaluation
                },
            }
            for s in board.standings
        ],
    }


def _json(summary: Any) -> dict[str, Any] | None:
    return None if summary is None else {"mean": summary.mean, "std": summary.std, "seeds": summary.n}
