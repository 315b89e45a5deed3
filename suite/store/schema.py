"""The database's tables, declared once: DDL, exports and documentation are made from this."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SCHEMA_VERSION = 1
"""Raised with every change of a table. A database of another version is rebuilt from the journals."""


class Kind(StrEnum):
    """What a column says, and with that whether two runs of the same inputs must agree on it."""

    KEY = "key"
    INPUT = "input"
    RESULT = "result"
    DERIVED = "derived"
    CLOCK = "clock"
    RESOURCE = "resource"
    MACHINE = "machine"
    DISPLAY = "display"

    @property
    def is_comparable(self) -> bool:
        """Whether a repeated run must show the same values (DESIGN 4, determinism)."""
        return self in {Kind.KEY, Kind.INPUT, Kind.RESULT, Kind.DERIVED}

    @property
    def meaning(self) -> str:
        """One line for the documentation."""
        return _MEANINGS[self]


_MEANINGS = {
    Kind.KEY: "identifies the row",
    Kind.INPUT: "fixed before the run",
    Kind.RESULT: "counted by the harness",
    Kind.DERIVED: "computed from results",
    Kind.CLOCK: "a time, or how often something had to be repeated",
    Kind.RESOURCE: "seconds, memory, energy",
    Kind.MACHINE: "where and with what it ran",
    Kind.DISPLAY: "words and figures of the learner; never acted upon",
}


@dataclass(frozen=True)
class Column:
    """One typed column."""

    name: str
    type: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table; its key columns order its rows."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    is_comparable: bool = True
    """Whether a repeated run must have the same rows: attempts depend on what went wrong."""

    @property
    def key(self) -> list[str]:
        """Names of the key columns."""
        return [c.name for c in self.columns if c.kind is Kind.KEY]

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return [c.name for c in self.columns]

    @property
    def ddl(self) -> str:
        """The statement that creates it.

        No PRIMARY KEY: its index would outweigh the counts, and merging under the lock keeps keys unique.
        """
        columns = ", ".join(f'"{c.name}" {c.type}{" NOT NULL" if c.kind is Kind.KEY else ""}' for c in self.columns)
        return f'CREATE TABLE "{self.name}" ({columns})'


_RUN = Column("run", "VARCHAR", Kind.KEY, "id of the run: a hash of all its inputs")
_TRIAL = Column("trial", "VARCHAR", Kind.KEY, "id of the trial: a hash of its key")

RUNS = Table(
    "runs",
    "One row per run: a submission on a track, with everything that its results depend on.",
    (
        _RUN,
        Column("submission", "VARCHAR", Kind.INPUT, "slug of the submission"),
        Column("image", "VARCHAR", Kind.INPUT, "image as it was named"),
        Column("fingerprint", "VARCHAR", Kind.INPUT, "what the image is (sha256)"),
        Column("manifest", "JSON", Kind.INPUT, "the learner's description of itself"),
        Column("track", "VARCHAR", Kind.INPUT, "name of the track"),
        Column("track_hash", "VARCHAR", Kind.INPUT, "content hash of the track"),
        Column("track_snapshot", "JSON", Kind.INPUT, "the whole track"),
        Column("data_hashes", "JSON", Kind.INPUT, "content hash per data set"),
        Column("suite_version", "VARCHAR", Kind.INPUT, "version of the suite"),
        Column("protocol", "VARCHAR", Kind.INPUT, "version of the learner protocol"),
        Column("isolation", "VARCHAR", Kind.INPUT, "how the learner was kept apart: none, docker, gvisor"),
        Column("device", "VARCHAR", Kind.INPUT, "cpu or cuda"),
        Column("hyperparameters", "JSON", Kind.INPUT, "given by the user instead of tuned, else NULL"),
        Column("cpu", "VARCHAR", Kind.MACHINE, "model of the CPU"),
        Column("cpus", "INTEGER", Kind.MACHINE, "number of CPUs"),
        Column("memory_bytes", "BIGINT", Kind.MACHINE, "memory of the machine"),
        Column("gpu", "VARCHAR", Kind.MACHINE, "model of the GPU"),
        Column("driver", "VARCHAR", Kind.MACHINE, "version of its driver"),
        Column("kernel", "VARCHAR", Kind.MACHINE, "version of the kernel"),
        Column("engine", "VARCHAR", Kind.MACHINE, "container engine and its version"),
        Column("versions", "JSON", Kind.MACHINE, "versions of the packages"),
        Column("argv", "VARCHAR[]", Kind.MACHINE, "command line"),
        Column("source_commit", "VARCHAR", Kind.MACHINE, "commit of the suite"),
        Column("is_dirty", "BOOLEAN", Kind.MACHINE, "whether the suite had uncommitted changes"),
        Column("started_at", "TIMESTAMP", Kind.CLOCK, "UTC"),
    ),
)

TRIALS = Table(
    "trials",
    "One row per trial that ended. Its scores are NULL unless its status is ok.",
    (
        _RUN,
        _TRIAL,
        Column("phase", "VARCHAR", Kind.INPUT, "tuning or evaluation"),
        Column("data_set", "VARCHAR", Kind.INPUT, "name of the data set"),
        Column("hyperparameters", "JSON", Kind.INPUT, "values used"),
        Column("seed_index", "INTEGER", Kind.INPUT, "s, from 0"),
        Column("scenario_seed", "BIGINT", Kind.INPUT, "seed of class order and splits"),
        Column("draw", "INTEGER", Kind.INPUT, "tuning draw, from 0; NULL in the evaluation phase"),
        Column("status", "VARCHAR", Kind.RESULT, "how it ended"),
        Column("acc", "DOUBLE", Kind.DERIVED, "Acc: accuracy over all held-out items after the last task"),
        Column("avg_acc", "DOUBLE", Kind.DERIVED, "AvgAcc: mean over tasks of Acc after each"),
        Column("aa", "DOUBLE", Kind.DERIVED, "AA: mean over tasks of per-task accuracy, after the last task"),
        Column("afm", "DOUBLE", Kind.DERIVED, "AFM: average forgetting (CLDyB eq. 1), after the last task"),
        Column("ar", "DOUBLE", Kind.DERIVED, "AR = -AFM"),
        Column("ala", "DOUBLE", Kind.DERIVED, "ALA: average learning accuracy (CLDyB eq. 2)"),
        Column("message", "VARCHAR", Kind.DISPLAY, "why it failed"),
        Column("log_tail", "VARCHAR", Kind.DISPLAY, "end of the learner's log"),
        Column("is_exclusive", "BOOLEAN", Kind.MACHINE, "whether its times may be ranked"),
        Column("attempts", "INTEGER", Kind.CLOCK, "tries, this one included"),
        Column("started_at", "TIMESTAMP", Kind.CLOCK, "UTC"),
        Column("ended_at", "TIMESTAMP", Kind.CLOCK, "UTC"),
        Column("journal_stamp", "VARCHAR", Kind.CLOCK, "size and time of the journal's file"),
    ),
)

TASKS = Table(
    "tasks",
    "One row per task that a trial learned.",
    (
        _RUN,
        _TRIAL,
        Column("task", "INTEGER", Kind.KEY, "from 0"),
        Column("classes", "VARCHAR[]", Kind.INPUT, "names of its classes, in order of arrival"),
        Column("acc", "DOUBLE", Kind.DERIVED, "Acc_t: accuracy over all held-out items seen so far"),
        Column("aa", "DOUBLE", Kind.DERIVED, "AA_t"),
        Column("afm", "DOUBLE", Kind.DERIVED, "AFM_t"),
        Column("ala", "DOUBLE", Kind.DERIVED, "ALA_t"),
        Column("agreement", "DOUBLE", Kind.RESULT, "share of items predicted alike in other company; last task only"),
        Column("state_bytes", "BIGINT", Kind.RESULT, "size of the state"),
        Column("state_files", "INTEGER", Kind.RESULT, "its files"),
        Column("state_elements", "BIGINT", Kind.RESULT, "numbers in it"),
        Column("state_hash", "VARCHAR", Kind.RESULT, "sha256 of it"),
        Column("stored_parameters", "BIGINT", Kind.RESULT, "as declared"),
        Column("trainable_parameters", "BIGINT", Kind.RESULT, "as declared"),
        Column("exemplars", "BIGINT", Kind.RESULT, "stored images, as declared"),
        Column("memory_b4_bytes", "BIGINT", Kind.RESULT, "memory as in CLDyB appendix B.4"),
        Column("train_seconds", "DOUBLE", Kind.RESOURCE, "of `learn`, up to the learner's `post` mark"),
        Column("post_seconds", "DOUBLE", Kind.RESOURCE, "of `learn`, after it"),
        Column("predict_seconds", "DOUBLE", Kind.RESOURCE, "of `predict`"),
        Column("setup_seconds", "DOUBLE", Kind.RESOURCE, "of start, describe and setup; outside training time"),
        Column("cpu_seconds", "DOUBLE", Kind.RESOURCE, "CPU time of the learning container"),
        Column("peak_memory_bytes", "BIGINT", Kind.RESOURCE, "sampled"),
        Column("peak_gpu_bytes", "BIGINT", Kind.RESOURCE, "sampled"),
        Column("energy_joules", "DOUBLE", Kind.RESOURCE, "of the GPU"),
        Column("metrics", "JSON", Kind.DISPLAY, "the learner's own"),
    ),
)

TASK_COUNTS = Table(
    "task_counts",
    "Accuracy counts: every score can be recomputed from these.",
    (
        _RUN,
        _TRIAL,
        Column("task", "INTEGER", Kind.KEY, "task learned last, from 0"),
        Column("tested", "INTEGER", Kind.KEY, "task tested, up to the one learned last"),
        Column("correct", "BIGINT", Kind.RESULT, "held-out items predicted right"),
        Column("total", "BIGINT", Kind.RESULT, "held-out items"),
    ),
)

ATTEMPTS = Table(
    "attempts",
    "One row per try that did not end its trial: the machine failed or the user stopped it. Never scored.",
    (
        _RUN,
        _TRIAL,
        Column("number", "INTEGER", Kind.KEY, "from 1"),
        Column("status", "VARCHAR", Kind.CLOCK, "what stopped it"),
        Column("message", "VARCHAR", Kind.DISPLAY, "more of it"),
        Column("log_tail", "VARCHAR", Kind.DISPLAY, "end of the learner's log"),
        Column("ended_at", "TIMESTAMP", Kind.CLOCK, "UTC"),
    ),
    is_comparable=False,
)

SELECTIONS = Table(
    "selections",
    "One row per finished tuning phase.",
    (
        _RUN,
        Column("draw", "INTEGER", Kind.RESULT, "the draw selected; NULL if none was eligible"),
        Column("hyperparameters", "JSON", Kind.RESULT, "its values"),
        Column("score", "DOUBLE", Kind.RESULT, "harmonic mean of its seed-mean Acc and AvgAcc"),
        Column("worst_draw", "INTEGER", Kind.RESULT, "the eligible draw with the lowest score"),
        Column("eligible_draws", "INTEGER", Kind.RESULT, "draws without a failed seed"),
        Column("draws", "INTEGER", Kind.RESULT, "all draws"),
        Column("failure", "VARCHAR", Kind.RESULT, "kind of the failure when no draw was eligible"),
    ),
)

ENTRIES = Table(
    "entries",
    "One row per leaderboard entry.",
    (
        _RUN,
        Column("submission", "VARCHAR", Kind.INPUT, "slug of the submission"),
        Column("track", "VARCHAR", Kind.INPUT, "name of the track"),
        Column("is_complete", "BOOLEAN", Kind.RESULT, "whether every trial ended"),
        Column("is_ranked", "BOOLEAN", Kind.RESULT, "whether it may be ranked"),
        Column("unranked_because", "VARCHAR[]", Kind.RESULT, "why not"),
        Column("data_sets", "JSON", Kind.RESULT, "status per evaluation set"),
    ),
)

TABLES = (RUNS, TRIALS, TASKS, TASK_COUNTS, ATTEMPTS, SELECTIONS, ENTRIES)


def markdown() -> str:
    """The documentation of the tables (`docs/store.md` is this text)."""
    lines = [
        "# The results database",
        "",
        "`suite.duckdb` lies in the results folder. It is merged from the journals under `runs/` and can be rebuilt",
        "from them at any time. Values are raw and unrounded, accuracies are fractions, times are UTC.",
        f"This describes schema version {SCHEMA_VERSION}; the table `schema_version` holds the version of a file.",
        "",
        "Two runs with the same inputs on like machines agree in every column of a comparable kind",
        "(`suite results export --comparable` writes no others):",
        "",
        "| kind | comparable | meaning |",
        "|---|---|---|",
        *(f"| {kind.value} | {'yes' if kind.is_comparable else 'no'} | {kind.meaning} |" for kind in Kind),
    ]
    for table in TABLES:
        lines += ["", f"## {table.name}", "", table.meaning]
        if not table.is_comparable:
            lines.append("Its rows are not comparable between runs.")
        lines += ["", "| column | type | kind | meaning |", "|---|---|---|---|"]
        lines += [f"| {c.name} | {c.type} | {c.kind.value} | {c.meaning} |" for c in table.columns]
    return "\n".join(lines) + "\n"
