"""What only a container promises (G6), looked at from inside and from the engine."""

from __future__ import annotations

import contextlib
import gc
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.errors import ImageError, InfrastructureError, LearnerError, UsageError
from suite.sandbox import MIB, Launch, open_sandbox
from suite.sandbox.docker.labels import labels_of
from suite.sandbox.warmup import manifest_of
from suite.status import Status
from tests.sandbox.conftest import open_runtime
from tests.sandbox.support import CLASSES, LABELS, LEARNERS, LIMITS, Runtime, learn

pytestmark = pytest.mark.docker
LOOK = replace(LIMITS, log_bytes=1 << 18)


def look(runtime: Runtime, **launch: Any) -> dict[str, Any]:
    """What a learner sees while it learns."""
    with runtime.cell("learn:look", limits=LOOK, **launch) as cell:
        learn(cell)
        time.sleep(0.1)
        seen: dict[str, Any] = json.loads(cell.log_tail().strip().splitlines()[-1])
    return seen


@pytest.fixture(scope="module")
def strict(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    yield from open_runtime("docker", request, tmp_path_factory.mktemp("cells"))


@pytest.fixture(scope="module")
def seen(strict: Runtime) -> dict[str, Any]:
    """One look."""
    return look(strict)


def containers(runtime: Runtime) -> list[dict[str, Any]]:
    api = runtime.sandbox._engine.api  # type: ignore[attr-defined]
    found: list[dict[str, Any]] = api.containers(all=True, filters={"label": "continual-suite.cell"})
    return [c for c in found if json.loads(c["Labels"]["continual-suite.labels"]) == LABELS]


def inspect(runtime: Runtime, cell: Any) -> dict[str, Any]:
    answer: dict[str, Any] = runtime.sandbox._engine.api.inspect_container(cell._container)  # type: ignore[attr-defined]
    return answer


# --- from inside ------------------------------------------------------------------------------------------------------


def test_nothing_outside_can_be_reached(seen: dict[str, Any]) -> None:
    assert seen["interfaces"] == ["lo"]
    assert "done" not in seen["reach"].values()


def test_only_scratch_memory_and_output_can_be_written(seen: dict[str, Any]) -> None:
    assert {path for path, outcome in seen["write"].items() if outcome == "done"} == {"/tmp", "/dev/shm"}
    assert seen["chmod"] != "done"


def test_scratch_and_shared_memory_are_capped(seen: dict[str, Any]) -> None:
    assert seen["fill"] == {"/tmp": "OSError:28", "/dev/shm": "OSError:28"}


def test_there_are_no_capabilities_and_no_new_privileges(seen: dict[str, Any]) -> None:
    status = seen["status"]
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert status["Groups"].split() in ([], [str(seen["gid"])])


def test_the_limits_of_the_launch_hold(seen: dict[str, Any]) -> None:
    assert seen["limits"] == {
        "RLIMIT_NOFILE": [LIMITS.open_files] * 2,
        "RLIMIT_FSIZE": [LIMITS.file_bytes] * 2,
        "RLIMIT_CORE": [0, 0],
    }


def test_an_unknown_uid_has_a_name_a_home_and_caches(seen: dict[str, Any]) -> None:
    environment = seen["environment"]
    assert seen["uid"] == seen["gid"] >= 1 << 30
    assert environment["USER"] == "learner"
    assert environment["HOME"] == environment["TMPDIR"] == "/tmp"
    assert environment["TORCHINDUCTOR_CACHE_DIR"].startswith("/tmp/")
    assert environment["TRITON_CACHE_DIR"].startswith("/tmp/")
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert environment["OMP_NUM_THREADS"] == str(LIMITS.cpus)
    assert not [name for name in environment if name.startswith("LD_")]
    assert seen["hostname"] == "learner"


def test_scratch_is_executable_and_output_is_not(seen: dict[str, Any]) -> None:
    options = {mount[0]: mount[1].split(",") for mount in seen["mounts"]}
    assert "noexec" not in options["/tmp"]
    assert {"noexec", "nosuid", "nodev"} <= set(options["/suite/out"])
    assert {"ro"} <= set(options["/suite/in"])
    assert {"ro"} <= set(options["/"])


def test_inputs_have_equal_modes_owners_and_times(seen: dict[str, Any]) -> None:
    files = [entry for path, entry in seen["files"].items() if path.endswith(".npy")]
    assert len(files) == len(CLASSES)
    assert {tuple(entry) for entry in files} == {("0o100444", False, 946_684_800.0, 1)}


def test_two_cells_look_the_same_but_for_their_uid(strict: Runtime, seen: dict[str, Any]) -> None:
    again = look(strict)
    assert again.pop("uid") != seen["uid"]
    assert again.pop("gid") != seen["gid"]
    left = {name: value for name, value in seen.items() if name not in ("uid", "gid")}
    for side in (again, left):
        side["status"] = {**side["status"], "Groups": ""}
    assert again == left


def test_copied_inputs_look_like_mounted_ones(strict: Runtime, seen: dict[str, Any]) -> None:
    sandbox: Any = strict.sandbox
    sandbox._shares_files = False
    try:
        copied = look(strict)
    finally:
        sandbox._shares_files = None
    for side in (copied["files"], files := dict(seen["files"])):
        side["/suite/in"] = side["/suite/in"][:2]  # the engine sets the time of a volume's own folder
    assert copied["files"] == files
    assert copied["write"] == seen["write"] | {path: copied["write"][path] for path in ("/suite/in", "/suite/in/data")}
    assert {copied["write"][path] for path in ("/suite/in", "/suite/in/data")} == {"PermissionError:13"}
    assert copied["chmod"] != "done"
    assert sandbox._sees_our_files(strict.acts), "the engine on this machine sees its files"


# --- from the engine --------------------------------------------------------------------------------------------------


def test_two_containers_are_the_same_but_for_names(strict: Runtime) -> None:
    dumps = []
    for act, amount in ((None, 0), ("learn:sleep", 3)):
        with strict.cell(act, amount) as cell:
            cell.pause()
            dumps.append(_normal(json.dumps(inspect(strict, cell), sort_keys=True)))
    assert dumps[0] == dumps[1]


def _normal(dump: str) -> dict[str, Any]:
    """A dump without what must differ: ids, tokens, user ids, process ids and times."""
    dump = re.sub(r"\b[0-9a-f]{64}\b", "ID", dump)
    dump = re.sub(r"\b[0-9a-f]{16}\b", "TOKEN", dump)
    dump = re.sub(r"(?<=/netns/)[0-9a-f]+", "NAMESPACE", dump)
    dump = re.sub(r'(?<=[":=])1[01]\d{8}(?=[":,])', "UID", dump)
    dump = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", dump)
    answer: dict[str, Any] = json.loads(re.sub(r'"Pid": \d+', '"Pid": 0', dump))
    answer["GraphDriver"]["Data"] = "layers of its own"
    answer["Mounts"].sort(key=lambda mount: mount["Destination"])  # the engine lists them from a map, in any order
    return answer


def test_a_container_has_every_limit(strict: Runtime) -> None:
    with strict.cell() as cell:
        dump = inspect(strict, cell)
    host = dump["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"]
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["PidsLimit"] == LIMITS.pids
    assert host["Memory"] == host["MemorySwap"] == LIMITS.memory_bytes
    assert host["NanoCpus"] == LIMITS.cpus * 10**9
    assert host["ShmSize"] == LIMITS.shm_bytes
    assert host["IpcMode"] == "private"
    assert host["LogConfig"]["Type"] == "none"
    assert host["Init"]
    assert not host["Privileged"]
    assert not host["Binds"]
    assert {mount["Destination"] for mount in dump["Mounts"]} == {"/suite/in", "/suite/out"}


def test_a_cell_moves_to_other_cpus_when_it_resumes(strict: Runtime) -> None:
    import os

    last = max(os.sched_getaffinity(0))
    with strict.cell("learn:look", limits=LOOK, cpuset=(min(os.sched_getaffinity(0)),)) as cell:
        cell.pause()
        cell.resume((last,))
        learn(cell)
        time.sleep(0.1)
        assert json.loads(cell.log_tail().strip().splitlines()[-1])["status"]["Cpus_allowed_list"] == str(last)


# --- limits -----------------------------------------------------------------------------------------------------------


def test_the_number_of_processes_is_capped(strict: Runtime) -> None:
    with strict.cell("learn:threads", 200) as cell, pytest.raises(LearnerError, match="can't start new thread"):
        learn(cell)


@pytest.mark.parametrize(
    ("size", "limits"),
    [
        (LIMITS.file_bytes + 1000, LIMITS),
        (60 * MIB, replace(LIMITS, file_bytes=100 * MIB)),
        (LIMITS.output_bytes + 1000, replace(LIMITS, file_bytes=100 * MIB)),
    ],
    ids=["over the longest file", "over the volume", "just over the limit"],
)
def test_a_state_that_does_not_fit_is_too_large_however_it_fails(
    strict: Runtime, tmp_path: Path, size: int, limits: Any
) -> None:
    def attempt() -> None:
        with strict.cell("learn:big_state", size, limits=limits) as cell:
            learn(cell)
            cell.collect(tmp_path / "state")

    with pytest.raises(LearnerError) as caught:
        attempt()
    assert caught.value.status is Status.STATE_TOO_LARGE


def test_a_sparse_file_counts_at_its_full_length(strict: Runtime, tmp_path: Path) -> None:
    limits = replace(LIMITS, file_bytes=1 << 40)
    with strict.cell("learn:sparse", 1 << 39, limits=limits) as cell:
        learn(cell)
        started = time.monotonic()
        with pytest.raises(LearnerError) as caught:
            cell.collect(tmp_path / "out")
        assert time.monotonic() - started < 5
    assert caught.value.status is Status.STATE_TOO_LARGE
    assert not (tmp_path / "out" / "sparse").exists()


# --- the engine and other hands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("deed", ["kill", "stop", "remove"])
def test_what_others_do_to_a_container_is_not_held_against_the_learner(strict: Runtime, deed: str) -> None:
    import threading

    with strict.cell("learn:sleep", 60) as cell:
        api = strict.sandbox._engine.api  # type: ignore[attr-defined]
        name: str = cell._container  # type: ignore[attr-defined]
        deeds = {
            "kill": lambda: api.kill(name),
            "stop": lambda: api.stop(name, timeout=1),
            "remove": lambda: api.remove_container(name, force=True),
        }
        other = threading.Timer(0.5, deeds[deed])
        other.start()
        with pytest.raises(InfrastructureError, match="outside"):
            learn(cell)
        other.join()


def test_nothing_is_left_of_closed_cells(strict: Runtime) -> None:
    api = strict.sandbox._engine.api  # type: ignore[attr-defined]
    for act in (None, "learn:raise", "learn:exit"):
        with strict.cell(act) as cell:
            names = {m["Name"] for m in inspect(strict, cell)["Mounts"] if m["Type"] == "volume"}
            assert names
            with contextlib.suppress(LearnerError):
                learn(cell)
        left = {volume["Name"] for volume in api.volumes()["Volumes"] or []}
        assert not names & left
    assert containers(strict) == []


def test_a_start_that_fails_leaves_nothing(strict: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.sandbox.docker.container.gpu_gauge", lambda _uuid: None)
    with pytest.raises(InfrastructureError, match="start a container"):
        strict.sandbox.start(Launch(strict.acts, LIMITS, gpu="GPU-00000000-0000-0000-0000-000000000000"))
    assert containers(strict) == []


def test_reaping_leaves_strangers_alone(strict: Runtime) -> None:
    api = strict.sandbox._engine.api  # type: ignore[attr-defined]
    stranger = api.create_container(strict.acts, labels=labels_of("x", LABELS))["Id"]
    try:
        strict.sandbox.reap(lambda labels: labels == LABELS)
        assert api.inspect_container(stranger)["State"]["Status"] == "created"
    finally:
        api.remove_container(stranger)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the SDK forgets to close its socket
def test_an_engine_that_is_gone_is_a_failure_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(InfrastructureError, match="suite doctor"):
        open_sandbox("docker")
    gc.collect()


def test_gvisor_is_refused_where_the_engine_lacks_it(strict: Runtime) -> None:
    if "runsc" in strict.sandbox._engine.runtimes:  # type: ignore[attr-defined]
        pytest.skip("this engine offers it")
    with pytest.raises(UsageError, match="runsc"):
        open_sandbox("gvisor")


# --- images -----------------------------------------------------------------------------------------------------------


def build(folder: Path, name: str, lines: str) -> str:
    from suite.sandbox.images import build_image

    (folder / "Dockerfile").write_text(f"FROM continual-suite-test/acts:latest\n{lines}\n")
    return build_image(folder, f"continual-suite-test/{name}:latest")


def test_an_image_that_steers_the_loader_is_refused(strict: Runtime, tmp_path: Path) -> None:
    image = build(tmp_path, "preload", "ENV LD_PRELOAD=/tmp/x.so")
    with pytest.raises(ImageError, match="LD_PRELOAD"):
        strict.sandbox.identify(image)
    with pytest.raises(ImageError, match="LD_PRELOAD"):
        strict.sandbox.start(Launch(image, LIMITS))


@pytest.mark.parametrize(
    "lines",
    [
        'ENTRYPOINT ["/nothing/here"]',
        "RUN touch /suite",
        "RUN mkdir /suite && touch /suite/out",
        "RUN ln -s /proc /suite",
        "RUN rm -rf /tmp && touch /tmp",
    ],
)
def test_an_image_that_cannot_be_started_is_at_fault(strict: Runtime, tmp_path: Path, lines: str) -> None:
    image = build(tmp_path, "no-start", lines)
    with pytest.raises(ImageError):
        manifest_of(strict.sandbox, Launch(image, LIMITS))
    assert containers(strict) == []


def test_an_image_that_is_no_learner_says_so(strict: Runtime, tmp_path: Path) -> None:
    image = build(tmp_path, "no-learner", 'ENTRYPOINT ["python", "-c", "print(1)"]')
    with pytest.raises(ImageError, match="no learner"):
        manifest_of(strict.sandbox, Launch(image, LIMITS))


def test_an_image_that_says_nothing_of_itself_is_refused(strict: Runtime) -> None:
    with pytest.raises(ImageError, match="label"):
        strict.sandbox.identify("continual-suite/base-numpy")


def test_a_label_that_lies_is_not_believed(strict: Runtime, tmp_path: Path) -> None:
    image = build(tmp_path, "bad-label", 'LABEL continual-suite.manifest=\'{"name": "<b>"}\'')
    with pytest.raises(ImageError, match="label"):
        strict.sandbox.identify(image)


def test_the_identity_names_the_image_by_its_content(strict: Runtime) -> None:
    identity = strict.sandbox.identify("continual-suite-test/acts:latest")
    assert identity.image.startswith("sha256:")
    assert LEARNERS.is_dir()
