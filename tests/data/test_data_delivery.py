"""What enters a container: fresh inodes, neutral names and times, test items in a secret order."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.data import DataSet, Scenario, Task, build_scenario, seen_classes, write_company, write_items, write_task
from suite.data.delivery import _copy_bytes, _items, _uneven

MakeDataSet = Callable[..., DataSet]
KEY = bytes(range(32))
TASK = Task(1, classes=(2, 0), ids=(7, 8))


def test_a_task_directory_holds_copies_under_the_learners_ids(make_data_set: MakeDataSet, tmp_path: Path) -> None:
    data_set = make_data_set([(3, 1), (2, 1), (5, 1)])
    write_task(data_set, TASK, tmp_path / "task")
    assert sorted(p.name for p in (tmp_path / "task").iterdir()) == ["00007.npy", "00008.npy"]
    assert np.array_equal(np.load(tmp_path / "task" / "00007.npy"), data_set.images("train", 2))
    assert (tmp_path / "task" / "00008.npy").read_bytes() == data_set.path("train", 0).read_bytes()


def test_every_copy_is_an_inode_of_its_own(make_data_set: MakeDataSet, tmp_path: Path) -> None:
    data_set = make_data_set([(3, 1), (2, 1), (5, 1)])
    for place in ("one", "two"):
        write_task(data_set, TASK, tmp_path / place)
    files = [data_set.path("train", 2), tmp_path / "one" / "00007.npy", tmp_path / "two" / "00007.npy"]
    assert len({path.stat().st_ino for path in files}) == 3
    assert {path.stat().st_nlink for path in files} == {1}


def test_names_modes_and_times_do_not_tell_the_data_set(make_data_set: MakeDataSet, tmp_path: Path) -> None:
    looks = []
    for name, counts in (("one", [(3, 1)] * 3), ("two", [(3, 2)] * 3)):
        data_set = make_data_set(counts, name=name)
        write_task(data_set, TASK, tmp_path / f"task-{name}")
        write_items(data_set.subset([0], "x"), {0: 0}, KEY, tmp_path / f"items-{name}")
        paths = [tmp_path / f"task-{name}", *sorted((tmp_path / f"task-{name}").iterdir())]
        paths += [tmp_path / f"items-{name}" / "items.npy"]
        looks.append([(stat.filemode(s.st_mode), s.st_mtime_ns, s.st_uid) for s in map(os.stat, paths)])
        assert {s.st_atime_ns for s in map(os.stat, paths[1:])} == {946_684_800 * 10**9}
    assert looks[0] == looks[1]
    assert looks[0][1][0] == "-r--r--r--"


def test_nothing_is_overwritten(make_data_set: MakeDataSet, tmp_path: Path) -> None:
    data_set = make_data_set([(1, 1)] * 3)
    write_task(data_set, TASK, tmp_path / "task")
    with pytest.raises(FileExistsError):
        write_task(data_set, TASK, tmp_path / "task")


def test_the_plain_path_copies_too(tmp_path: Path) -> None:
    """Where neither reflink nor copy_file_range works (other file system), sendfile finishes the copy."""
    content = os.urandom(100_000)
    (tmp_path / "from").write_bytes(content)
    shared = Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp_path
    target = shared / f"suite-test-{os.getpid()}"
    reader, writer = os.open(tmp_path / "from", os.O_RDONLY), os.open(target, os.O_WRONLY | os.O_CREAT)
    try:
        _copy_bytes(reader, writer, len(content))
        assert target.read_bytes() == content
    finally:
        os.close(reader)
        os.close(writer)
        target.unlink()


def test_items_are_all_test_images_once_in_the_secret_order(make_data_set: MakeDataSet, tmp_path: Path) -> None:
    data_set = make_data_set([(1, 4), (1, 7), (1, 2), (1, 5)])
    class_map = {0: 3, 1: 1, 2: 0}  # class 2 is not yet seen
    labels = write_items(data_set, class_map, KEY, tmp_path / "items")
    items = np.load(tmp_path / "items" / "items.npy")
    assert labels.dtype == np.int64
    assert items.dtype == np.uint8
    assert items.shape == (16, 8, 8, 3)
    for name, index in class_map.items():
        mine = sorted(one.tobytes() for one in items[labels == name])
        assert mine == sorted(one.tobytes() for one in data_set.images("test", index))
    assert labels.tolist() != sorted(labels.tolist())


def test_the_order_depends_on_the_key(make_data_set: MakeDataSet, tmp_path: Path) -> None:
    data_set = make_data_set([(1, 20), (1, 20)])
    first = write_items(data_set, {0: 0, 1: 1}, KEY, tmp_path / "a")
    again = write_items(data_set, {0: 0, 1: 1}, KEY, tmp_path / "b")
    other = write_items(data_set, {0: 0, 1: 1}, KEY[::-1], tmp_path / "c")
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (tmp_path / "a" / "items.npy").read_bytes() == (tmp_path / "b" / "items.npy").read_bytes()


def test_company_repeats_items_in_another_order_and_other_class_counts(
    make_data_set: MakeDataSet, tmp_path: Path
) -> None:
    data_set = make_data_set([(1, 40)] * 6)
    class_map = {i: 5 - i for i in range(6)}
    labels = write_items(data_set, class_map, KEY, tmp_path / "all")
    positions = write_company(data_set, class_map, KEY, tmp_path / "some")
    items, company = (np.load(tmp_path / place / "items.npy") for place in ("all", "some"))
    assert np.array_equal(items[positions], company)
    assert len(np.unique(positions)) == len(positions) < len(items)
    counts = np.bincount(labels[positions], minlength=6)
    assert counts.min() >= 1
    assert len(set(counts.tolist())) >= 4
    assert np.abs(np.diff(positions)).mean() > len(items) / 6  # not the first order thinned out


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.binary(min_size=32, max_size=32))
def test_company_holds_every_class(counts: list[int], key: bytes) -> None:
    items = np.concatenate([np.stack([np.full(n, i), np.arange(n)], axis=1) for i, n in enumerate(counts)])
    chosen = _uneven(items, key)
    taken = np.bincount(items[chosen, 0], minlength=len(counts))
    assert (taken >= 1).all()
    assert (taken <= np.array(counts)).all()
    assert len(set(chosen.tolist())) == len(chosen)


def test_items_of_a_whole_scenario_cover_the_data_set(make_data_set: MakeDataSet, tmp_path: Path) -> None:
    data_set = make_data_set([(1, i + 1) for i in range(6)])
    tasks = build_scenario(6, Scenario.parse("2 + 2x2"), 3)
    labels = write_items(data_set, seen_classes(tasks), KEY, tmp_path / "items")
    order = [index for task in tasks for index in task.classes]
    assert np.bincount(labels).tolist() == [index + 1 for index in order]
    assert len(_items(data_set, seen_classes(tasks))) == 21


_MEASURE = """
import resource, sys
from pathlib import Path
from suite.data import DataSet, write_items
data_set = DataSet.open(Path(sys.argv[1]))
write_items(data_set, {0: 0}, bytes(32), Path(sys.argv[2]) / 'warm')
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
write_items(data_set, {1: 1, 2: 2}, bytes(32), Path(sys.argv[2]) / 'big')
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_memory_does_not_grow_with_the_request(make_data_set: MakeDataSet, tmp_path: Path) -> None:
    data_set = make_data_set([(1, 1), (1, 1000), (1, 1000)], resolution=128)
    assert isinstance(data_set, DataSet)
    run = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(data_set.directory), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (tmp_path / "big" / "items.npy").stat().st_size > 98e6
    assert float(run.stdout) < 16  # MB
