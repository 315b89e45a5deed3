"""The runtimes that the contract is tested on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.errors import InfrastructureError
from suite.sandbox import Launch, MemorySandbox, SandboxName, open_sandbox
from suite.sandbox.warmup import manifest_of
from tests.sandbox.learners import acts
from tests.sandbox.support import LEARNERS, Runtime

STRICT: SandboxName = "gvisor" if os.environ.get("SUITE_TEST_SANDBOX") == "gvisor" else "docker"
"""What stands for the strict runtime: gVisor can take Docker's place where the engine offers it."""

DOCKER = pytest.param("docker", marks=pytest.mark.docker)


def engine_is_there() -> bool:
    from suite.sandbox.docker import DockerSandbox

    try:
        with DockerSandbox():
            return True
    except InfrastructureError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


def ask(image: str) -> str:
    """The manifest that an image's learner gives, as JSON."""
    with open_sandbox("docker") as sandbox:
        return manifest_of(sandbox, Launch(image)).model_dump_json()


@pytest.fixture(scope="session")
def test_images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One image for each test learner."""
    engine_is_there()
    from suite.sandbox.images import build_with_manifest

    images = {}
    for name, target in (("acts", "acts.py:Acts"), ("rogue", "rogue.py:Rogue")):
        context = tmp_path_factory.mktemp(name)
        for source in LEARNERS.glob("*.py"):
            shutil.copy(source, context)
        (context / "Dockerfile").write_text(
            "FROM continual-suite/base-numpy\nCOPY *.py /app/\nWORKDIR /app\n"
            f'ENTRYPOINT ["python", "-m", "suite.sdk", "{target}"]\n'
        )
        images[name] = build_with_manifest(context, f"continual-suite-test/{name}:latest", ask)
    return images


def open_runtime(name: str, request: pytest.FixtureRequest, root: Path) -> Iterator[Runtime]:
    match name:
        case "memory":
            with MemorySandbox({"acts": acts.Acts}) as sandbox:
                yield Runtime(name, sandbox, "acts")
        case "process":
            with open_sandbox("process", root) as process:
                yield Runtime(name, process, f"{LEARNERS}/acts.py:Acts", f"{LEARNERS}/rogue.py:Rogue")
        case _:
            images = request.getfixturevalue("test_images")
            with open_sandbox(STRICT, root) as docker:
                yield Runtime(name, docker, images["acts"], images["rogue"])


@pytest.fixture(params=["memory", "process", DOCKER])
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Runtime]:
    """Every runtime."""
    yield from open_runtime(request.param, request, tmp_path / "cells")


@pytest.fixture(params=["process", DOCKER])
def wired(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Runtime]:
    """The runtimes with a learner at the other end of a wire."""
    yield from open_runtime(request.param, request, tmp_path / "cells")


@pytest.fixture
def docker_runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Runtime]:
    """The strict runtime."""
    yield from open_runtime("docker", request, tmp_path / "cells")
