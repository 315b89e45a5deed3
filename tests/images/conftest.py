"""A Docker engine for tests that build, and the description of an image as the engine would give it."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from typing import Any

import docker
import pytest

Inspected = dict[str, Any]


@pytest.fixture(scope="session")
def client() -> Iterator[docker.DockerClient]:
    try:
        connected = docker.from_env(timeout=600)
        connected.ping()
    except docker.errors.DockerException as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no Docker engine answers: {error}")
        pytest.skip(f"no Docker engine answers (`make engine`): {error}")
    yield connected
    connected.close()


@pytest.fixture
def inspected() -> Callable[..., Inspected]:
    """What the engine says of a plain learner image, with some entries of its configuration changed."""
    plain: Inspected = {
        "Id": "sha256:1",
        "RepoTags": ["one:1"],
        "Created": "2026-01-01T00:00:00Z",
        "Config": {
            "Env": ["PATH=/opt/learner/bin:/usr/bin:/bin"],
            "Entrypoint": ["python", "-m", "suite.sdk", "ncm:Ncm"],
            "Cmd": None,
            "WorkingDir": "/app",
            "User": "",
            "Labels": {"continual-suite.protocol": "1.0", "continual-suite.manifest": "{}"},
            "Volumes": None,
        },
        "RootFS": {"Type": "layers", "Layers": ["sha256:a", "sha256:b"]},
    }

    def make(**config: Any) -> Inspected:
        made = copy.deepcopy(plain)
        made["Config"].update(config)
        return made

    return make
