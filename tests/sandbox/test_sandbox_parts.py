"""Text, files, sources and specifications: the parts that need no learner."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.errors import ImageError, InfrastructureError, LearnerError
from suite.sandbox import Isolation, Launch, Limits
from suite.sandbox.docker.labels import labels_of, run_labels
from suite.sandbox.docker.spec import Placement, container_spec
from suite.sandbox.folders import Folders
from suite.sandbox.gpu import GpuGauge
from suite.sandbox.inbox import Inbox
from suite.sandbox.intake import take_folder
from suite.sandbox.metering import Meter, Reading, cgroup_gauge, process_tree_gauge
from suite.sandbox.sources import fingerprint_source, parse_target
from suite.sandbox.text import MAX_QUOTE, Tail, printable, quote
from suite.status import Status

# --- text -------------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=300) | st.text(max_size=300))
def test_shown_text_is_printable(raw: bytes | str) -> None:
    assert all(c.isprintable() or c in "\n\t" for c in printable(raw))
    assert quote(raw).isprintable()
    assert len(quote(raw)) <= MAX_QUOTE


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_progress_bars_become_lines_and_escapes_are_shown() -> None:
    assert printable(b"1%\r2%\r\n\x1b[31m\xff\xe2\x80\xae") == "1%\n2%\n\\x1b[31m\\xff\\u202e"


@given(st.lists(st.binary(max_size=50), max_size=30), st.integers(0, 40))
def test_a_tail_holds_the_last_bytes_and_not_many_more(parts: list[bytes], limit: int) -> None:
    tail = Tail(limit)
    for part in parts:
        tail.add(part)
        assert len(tail._bytes) <= 2 * limit + limit
    assert len(tail.text()) <= limit
    expected = printable(b"".join(parts)[-limit:] if limit else b"")
    assert tail.text() == (expected[-limit:] if limit else "")


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_delivery_appears_whole_and_sealed(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "cell")
    with inbox.stage("data") as folder:
        (folder / "a").write_bytes(b"1")
        assert list((inbox.seen / "data").iterdir()) == []
    inbox.deliver(folder)
    [file] = (inbox.seen / "data").iterdir()
    assert (file.stat().st_mode & 0o777, file.stat().st_mtime, file.stat().st_nlink) == (0o444, 946_684_800, 1)
    assert {p.stat().st_mtime for p in (inbox.seen, inbox.seen / "data", inbox.seen / "state")} == {946_684_800}


def test_a_folder_is_delivered_once(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "cell")
    for attempt in range(2):
        with inbox.stage("data") as folder:
            (folder / "a").write_bytes(b"1")
        if attempt == 0:
            inbox.deliver(folder)
    with pytest.raises(InfrastructureError):
        inbox.deliver(folder)


def test_a_delivery_that_fails_shows_nothing(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "cell")

    def deliver() -> None:
        with inbox.stage("data") as folder:
            (folder / "a").write_bytes(b"1")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        deliver()
    assert list((inbox.seen / "data").iterdir()) == []


def test_only_the_three_folders_exist(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="labels"), Inbox(tmp_path / "cell").stage("labels"):
        pass


def test_a_folder_is_taken_without_following_links(tmp_path: Path) -> None:
    source = tmp_path / "out"
    source.mkdir()
    (source / "b").write_bytes(b"22")
    (source / "a").write_bytes(b"1")
    with contextlib.suppress(OSError):  # where the file system has them
        os.setxattr(source / "a", "user.hidden", b"x")
    files = take_folder(source, tmp_path / "copy", Limits())
    assert [(f.name, f.read_bytes()) for f in files] == [("a", b"1"), ("b", b"22")]
    assert os.listxattr(files[0]) == []
    (source / "c").symlink_to("/etc/passwd")
    with pytest.raises(LearnerError) as caught:
        take_folder(source, tmp_path / "again", Limits())
    assert caught.value.status is Status.PROTOCOL_ERROR
    assert list((tmp_path / "again").iterdir()) == []


def test_a_root_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folders = Folders(tmp_path, "docker")
    cell = folders.make({"run": "a"})
    cell.parent.chmod(0o777)
    with pytest.raises(InfrastructureError, match="others may write"):
        folders.make({})


def test_folders_of_dead_runs_are_reaped(tmp_path: Path) -> None:
    folders = Folders(tmp_path, "docker")
    dead, living = folders.make({"run": "dead"}), folders.make({"run": "living"})
    (dead / "in").mkdir()
    assert folders.reap(lambda labels: labels["run"] == "dead") == 1
    assert not dead.exists()
    assert living.exists()


# --- sources ----------------------------------------------------------------------------------------------------------


def test_a_changed_source_is_another_learner(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("class Mine: pass\n")
    (tmp_path / "parts.py").write_text("")
    first = fingerprint_source(parse_target(f"{file}:Mine"))
    assert first == fingerprint_source(parse_target(f"{file}:Mine"))
    assert first != fingerprint_source(parse_target(f"{file}:Other"))
    (tmp_path / "parts.py").write_text("x = 1\n")
    assert first != fingerprint_source(parse_target(f"{file}:Mine"))


def test_a_folder_elsewhere_is_the_same_learner(tmp_path: Path) -> None:
    prints = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text("class Mine: pass\n")
        prints.append(fingerprint_source(parse_target(f"{tmp_path}/{name}/mine.py:Mine")))
    assert prints[0] == prints[1]


def test_a_module_is_known_by_its_whole_package_without_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "pack"
    (package / "sub").mkdir(parents=True)
    for name in ("__init__.py", "one.py", "sub/__init__.py", "sub/two.py"):
        (package / name).write_text("raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    target = parse_target("pack.sub.two:Two")
    assert [path.relative_to(tmp_path).as_posix() for path in target.sources] == [
        "pack/__init__.py",
        "pack/one.py",
        "pack/sub/__init__.py",
        "pack/sub/two.py",
    ]


@pytest.mark.parametrize(
    "image", ["", "module", ":Class", "module:", "absent.py:Class", "no_such_module:Class", "a:b c"]
)
def test_what_names_no_learner_is_refused(image: str) -> None:
    with pytest.raises(ImageError):
        parse_target(image)


# --- specifications ---------------------------------------------------------------------------------------------------


def test_equal_launches_differ_in_token_folder_and_uid_only() -> None:
    specs = []
    for token, uid in (("aaaa", 7), ("bbbb", 8)):
        place = Placement(token, uid, Path("/cells") / token / "in")
        text = repr(container_spec(Launch("image", labels={"run": "x"}), "sha256:1", place))
        specs.append(text.replace(token, "TOKEN").replace(f"{uid}:{uid}", "UID").replace(f"id={uid}", "id=UID"))
    assert specs[0] == specs[1]


def test_gpus_cpus_and_weights_are_asked_for() -> None:
    launch = Launch("image", gpu="GPU-1", cpuset=(2, 5), weights=Path("/weights"))
    spec = container_spec(launch, "sha256:1", Placement("t", 7, None, Isolation.GVISOR))
    host = spec["host_config"]
    assert host["cpuset_cpus"] == "2,5"
    assert host["device_requests"][0]["DeviceIDs"] == ["GPU-1"]
    assert host["runtime"] == "runsc"
    assert spec["environment"]["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert "NVIDIA_VISIBLE_DEVICES" not in spec["environment"]
    mounts = {mount["Target"]: mount for mount in host["mounts"]}
    assert mounts["/suite/weights"]["ReadOnly"]
    assert mounts["/suite/in"]["Type"] == "volume"


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5)))
def test_labels_survive_the_engine(labels: dict[str, str]) -> None:
    assert run_labels(labels_of("token", labels)) == labels


@pytest.mark.parametrize("marks", [None, {}, {"other": "x"}, {"continual-suite.cell": "x"}])
def test_what_bears_no_mark_is_not_ours(marks: Any) -> None:
    assert run_labels(marks) is None


# --- metering ---------------------------------------------------------------------------------------------------------


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_control_groups_of_version_1_are_read(tmp_path: Path) -> None:
    write(tmp_path / "proc", {"7/cgroup": "9:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc\n"})
    stat = "rss 1\ntotal_rss 1000\ntotal_shmem 24\ntotal_cache 9999\n"
    write(
        tmp_path / "fs",
        {
            "memory/docker/abc/memory.stat": stat,
            "memory/docker/abc/cgroup.procs": "7\n8\n",
            "cpuacct/docker/abc/cpuacct.usage": "2500000000\n",
        },
    )
    gauge = cgroup_gauge(7, "abc", tmp_path / "fs", tmp_path / "proc")
    assert gauge is not None
    assert gauge() == Reading(2.5, 1024, frozenset({7, 8}))


def test_control_groups_of_version_2_are_read(tmp_path: Path) -> None:
    write(tmp_path / "proc", {"7/cgroup": "0::/system.slice/docker-abc.scope\n"})
    folder = "system.slice/docker-abc.scope"
    write(
        tmp_path / "fs",
        {
            f"{folder}/memory.stat": "anon 1000\nfile 9999\nshmem 24\n",
            f"{folder}/cpu.stat": "usage_usec 1500000\nuser_usec 1\n",
            f"{folder}/cgroup.procs": "7\n",
        },
    )
    gauge = cgroup_gauge(7, "abc", tmp_path / "fs", tmp_path / "proc")
    assert gauge is not None
    assert gauge() == Reading(1.5, 1024, frozenset({7}))
    (tmp_path / "fs" / folder / "memory.stat").unlink()
    assert gauge() is None


def test_a_group_that_does_not_name_the_container_is_not_its(tmp_path: Path) -> None:
    write(tmp_path / "proc", {"7/cgroup": "0::/\n"})
    assert cgroup_gauge(7, "abc", tmp_path / "fs", tmp_path / "proc") is None
    assert cgroup_gauge(8, "abc", tmp_path / "fs", tmp_path / "proc") is None


def test_a_meter_keeps_the_peak_when_its_cell_is_gone() -> None:
    readings = iter([Reading(1.0, 50), Reading(2.0, 80), Reading(3.0, 10), None])
    meter = Meter(lambda: next(readings))
    for _ in range(4):
        meter.sample()
    usage = meter.usage()
    assert (usage.cpu_seconds, usage.peak_memory_bytes) == (3.0, 80)
    assert (usage.peak_gpu_bytes, usage.energy_joules) == (None, None)


def test_this_process_can_be_read() -> None:
    reading = process_tree_gauge(os.getpid())()
    assert reading is not None
    assert os.getpid() in reading.pids
    assert 1 << 20 < reading.memory_bytes < 1 << 34
    assert process_tree_gauge(2**22 - 1)() is None


class FakeNvml:
    """One GPU that does what the test says."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.used, self.millijoules, self.is_lost = 100, 5000, False
        self.processes = [SimpleNamespace(pid=7, usedGpuMemory=300), SimpleNamespace(pid=9, usedGpuMemory=1)]

    def nvmlDeviceGetMemoryInfo(self, _device: object) -> Any:  # noqa: N802
        if self.is_lost:
            raise self.NVMLError("GPU is lost")
        return SimpleNamespace(used=self.used)

    def nvmlDeviceGetComputeRunningProcesses(self, _device: object) -> Any:  # noqa: N802
        return self.processes

    def nvmlDeviceGetTotalEnergyConsumption(self, _device: object) -> int:  # noqa: N802
        return self.millijoules


def test_gpu_memory_is_that_of_the_cells_processes_or_of_the_growth() -> None:
    nvml = FakeNvml()
    gauge = GpuGauge(nvml, None)
    nvml.used, nvml.millijoules = 900, 7500
    gauge.sample({7, 8})
    assert gauge.peak_bytes == 300
    assert gauge.joules == 2.5
    nvml.processes = []
    gauge.sample({7, 8})
    assert gauge.peak_bytes == 800


def test_a_lost_gpu_is_not_held_against_the_learner() -> None:
    nvml = FakeNvml()
    gauge = GpuGauge(nvml, None)
    meter = Meter(lambda: Reading(1.0, 1), gauge)
    crash = LearnerError(Status.CRASHED, "CUDA error")
    assert meter.second_look(crash) is crash
    nvml.is_lost, nvml.processes = True, []
    meter.sample()
    assert isinstance(meter.second_look(crash), InfrastructureError)


def test_limits_are_values() -> None:
    assert replace(Limits(), cpus=2) == Limits(cpus=2)
    assert Launch("a") == Launch("a")
