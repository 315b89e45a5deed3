"""The fingerprint follows what a container runs, not its name; what reaches past the sandbox is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suite.errors import ImageError
from suite.sandbox.images import check_config, fingerprint

Inspect = Callable[..., dict[str, Any]]


def test_the_fingerprint_is_sha256_in_hex(inspected: Inspect) -> None:
    assert len(fingerprint(inspected())) == 64
    assert int(fingerprint(inspected()), 16) >= 0


@pytest.mark.parametrize("change", [{"RepoTags": ["two:2"]}, {"Created": "2027-01-01T00:00:00Z"}, {"Id": "sha256:2"}])
def test_tag_time_and_id_do_not_change_the_fingerprint(inspected: Inspect, change: dict[str, Any]) -> None:
    assert fingerprint({**inspected(), **change}) == fingerprint(inspected())


def test_labels_of_others_do_not_change_the_fingerprint(inspected: Inspect) -> None:
    own = inspected()["Config"]["Labels"]
    assert fingerprint(inspected(Labels={**own, "maintainer": "someone"})) == fingerprint(inspected())


@pytest.mark.parametrize(
    "config",
    [
        {"Env": ["PATH=/usr/bin"]},
        {"Entrypoint": ["python", "-m", "suite.sdk", "other:Other"]},
        {"Cmd": ["argument"]},
        {"WorkingDir": "/elsewhere"},
        {"User": "1000"},
        {"Labels": {"continual-suite.protocol": "1.0", "continual-suite.manifest": '{"name":"x"}'}},
        {"Labels": {"continual-suite.protocol": "1.1", "continual-suite.manifest": "{}"}},
    ],
)
def test_what_decides_what_runs_changes_the_fingerprint(inspected: Inspect, config: dict[str, Any]) -> None:
    assert fingerprint(inspected(**config)) != fingerprint(inspected())


def test_layers_and_their_order_change_the_fingerprint(inspected: Inspect) -> None:
    prints = {
        fingerprint({**inspected(), "RootFS": {"Layers": layers}})
        for layers in (["sha256:a"], ["sha256:a", "sha256:b"], ["sha256:b", "sha256:a"])
    }
    assert len(prints) == 3


def test_a_missing_entry_is_an_empty_one(inspected: Inspect) -> None:
    assert fingerprint(inspected(Cmd=[], User=None)) == fingerprint(inspected(Cmd=None, User=""))


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"Env": ["LD_PRELOAD=/x.so"]}, "LD_PRELOAD"),
        ({"Env": ["A=1", "LD_LIBRARY_PATH="]}, "LD_LIBRARY_PATH"),
        ({"Env": ["LD_AUDIT=/x.so"]}, "LD_AUDIT"),
        ({"Env": ["NVIDIA_VISIBLE_DEVICES=all"]}, "NVIDIA_VISIBLE_DEVICES"),
        ({"Env": ["NVIDIA_"]}, "NVIDIA_"),
        ({"WorkingDir": "/proc/self/fd/8"}, "/proc/self/fd/8"),
        ({"WorkingDir": "/app/../proc/1"}, "/proc/1"),
        ({"WorkingDir": "//proc"}, "/proc"),
        ({"WorkingDir": "/dev/fd/7"}, "/dev/fd/7"),
        ({"Volumes": {"/data": {}}}, "volumes"),
        ({"Healthcheck": {"Test": ["CMD", "true"]}}, "health check"),
        ({"Entrypoint": None, "Cmd": None}, "starts nothing"),
    ],
)
def test_it_is_refused_with_what_and_how(inspected: Inspect, config: dict[str, Any], named: str) -> None:
    with pytest.raises(ImageError, match=named) as refused:
        check_config(inspected(**config))
    assert refused.value.remedy


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"Env": ["MY_LD_PRELOAD=1", "PYTHONPATH=/app", "TORCH_HOME=/app"]},
        {"WorkingDir": ""},
        {"WorkingDir": "/process"},
        {"WorkingDir": "/app/proc"},
        {"Healthcheck": {"Test": ["NONE"]}},
        {"Volumes": {}},
    ],
)
def test_it_is_accepted(inspected: Inspect, config: dict[str, Any]) -> None:
    check_config(inspected(**config))
