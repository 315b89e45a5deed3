"""Numbers as readers see them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from suite.metrics import Summary
from suite.protocol import Choice, Int, LogUniform, Uniform
from suite.site import figures
from suite.site.table import Badge, Column, Entry, Table, shown, sort_key
from suite.site.text import MAX_LOG, clean, clean_log, file_name, https_only
from suite.status import Status


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (figures.percent(0.98765), "98.8"),
        (figures.percent(0.0), "0.0"),
        (figures.percent(-0.00001), "0.0"),
        (figures.percent(None), figures.NONE),
        (figures.points(0.0123), "+1.2"),
        (figures.points(-0.0123), f"{figures.MINUS}1.2"),
        (figures.points(-0.00001), "+0.0"),
        (figures.points(0.0), "+0.0"),
        (figures.mean_std(Summary(0.5, 0.0123, 3)), "50.0 ± 1.2"),
        (figures.mean_std(Summary(0.5, None, 1)), "50.0"),
        (figures.seconds(0.1234), "0.12 s"),
        (figures.seconds(12.34), "12.3 s"),
        (figures.seconds(61), "1 min 01 s"),
        (figures.seconds(3599.7), "1 h 00 min"),
        (figures.seconds(7260), "2 h 01 min"),
        (figures.byte_count(0), "0 B"),
        (figures.byte_count(999), "999 B"),
        (figures.byte_count(999.9), "1.00 kB"),
        (figures.byte_count(1536), "1.54 kB"),
        (figures.byte_count(12_345_678), "12.3 MB"),
        (figures.byte_count(3e15), "3000 TB"),
        (figures.count(464_154), "464 k"),
        (figures.count(9999), "9999"),
        (figures.count(2.5), "2.5"),
        (figures.count(86_000_000), "86.0 M"),
        (figures.change(2), "▲ 2"),
        (figures.change(-1), "▼ 1"),
        (figures.change(0), "="),
        (figures.place(None), figures.NONE),
        (figures.number(-0.000123456), f"{figures.MINUS}0.0001235"),
        (figures.value(True), "true"),
        (figures.value(None), "null"),
        (figures.value("adam"), "adam"),
        (figures.point({}), "none"),
        (figures.point({"lr": 0.1, "nesterov": False}), "lr = 0.1, nesterov = false"),
        (figures.dimension(Choice([1, 2], when={"kind": ["step", "cosine"]})), "1, 2 (if kind is step or cosine)"),
        (figures.dimension(LogUniform(low=0.001, high=1)), "0.001 to 1, log-uniform"),
        (figures.dimension(Uniform(low=0, high=1)), "0 to 1"),
        (figures.dimension(Int(low=1, high=9)), "1 to 9, integer"),
    ],
)  # fmt: skip
def test_a_number_is_written_as_readers_expect(made: str, expected: str) -> None:
    assert made == expected


def test_dash_and_minus_are_the_typographic_ones() -> None:
    assert (figures.NONE, figures.MINUS) == ("\u2013", "\u2212")


def test_times_are_in_utc() -> None:
    berlin = datetime(2026, 7, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert figures.moment(berlin) == "2026-06-30 23:30 UTC"
    assert figures.day(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01"


# --- text of others ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", ["\x00", "\x1b[31m", "\u202e", "\u200b", "\ufeff", "\ud800", "\x85", "\u2028"])
def test_what_draws_outside_its_place_is_replaced_visibly(hidden: str) -> None:
    assert clean(f"a{hidden}b") == f"a\ufffd{hidden[1:]}b"


def test_long_text_is_capped() -> None:
    assert clean("x" * 10_000, 10) == "x" * 9 + "…"
    assert clean("x" * 10, 10) == "x" * 10
    log = clean_log("begin" + "x" * 100_000 + "end")
    assert len(log) == MAX_LOG
    assert log.endswith("end")
    assert clean_log("a\nb\tc") == "a\nb\tc"


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "a b", ".hidden", "ü", "x" * 64, "a\n"])
def test_a_name_that_is_no_plain_name_becomes_a_hash(name: str) -> None:
    made = file_name(name)
    assert made.startswith("x-")
    assert len(made) == 18
    assert file_name(name) == made != file_name(name + "y")


def test_a_plain_name_stays() -> None:
    assert file_name("CIFAR-50_1") == "CIFAR-50_1"


@pytest.mark.parametrize(
    "address",
    ["http://example.org", "javascript:alert(1)", "https://a b", 'https://a"b', "https://", "//example.org", None, "",
     " https://example.org", "https://x\nhttps://y"],
)  # fmt: skip
def test_only_https_addresses_are_linked_to(address: str | None) -> None:
    assert https_only(address) is None
    assert https_only("https://example.org/a?b=c#d") == "https://example.org/a?b=c#d"


# --- tables -----------------------------------------------------------------------------------------------------------

TABLE = Table(
    id="t",
    caption="T",
    columns=[
        Column("who", "Who", "entry"),
        Column("acc", "Acc", "mean_std", group="A"),
        Column("avg", "AvgAcc", "mean_std", group="A"),
        Column("status", "Status", "status"),
    ],
    rows=[
        {"who": Entry("x", "y", (Badge("b"),)), "acc": Summary(0.5, 0.1, 2), "avg": None, "status": Status.OK},
        {"who": Entry("z"), "acc": Status.CRASHED, "avg": Status.CRASHED, "status": Status.CRASHED},
    ],
)


def test_downloads_hold_raw_values_and_deviations_apart() -> None:
    header, rows = TABLE.flat()
    assert header == ["who", "acc_mean", "acc_std", "avg_mean", "avg_std", "status"]
    assert rows == [["x", 0.5, 0.1, None, None, "ok"], ["z", None, None, None, None, "crashed"]]
    json.dumps(rows)


def test_neighbouring_columns_share_the_title_above_them() -> None:
    assert TABLE.groups == [("", 1), ("A", 2), ("", 1)]


def test_numbers_sort_by_value_and_failures_have_none() -> None:
    _, acc, _, status = TABLE.columns
    assert sort_key(acc, Summary(0.5, 0.1, 2)) == "0.5"
    assert sort_key(acc, Status.CRASHED) == ""
    assert sort_key(acc, None) == ""
    assert sort_key(status, Status.OK) == ""
    assert shown(acc, Status.OUT_OF_MEMORY) == "out of memory"
    assert shown(acc, None) == figures.NONE
