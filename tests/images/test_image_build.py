"""Real builds on a real engine: no network, one image per content, errors with the end of the log."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from suite.errors import ImageError, InfrastructureError
from suite.sandbox.images import (
    MANIFEST_LABEL,
    PROTOCOL_LABEL,
    build_image,
    build_with_manifest,
    check_config,
    ensure_base,
    fingerprint,
    inspect_image,
    learner_wheel_name,
)

TAG = "continual-suite-test/build:latest"
MANIFEST = json.dumps({"name": "quotes ' \" and $HOME and \\ and ü", "space": {}})


@pytest.fixture
def author(tmp_path: Path) -> Path:
    (tmp_path / "Dockerfile").write_text(
        'FROM continual-suite/base-numpy\nCOPY learner.py /app/\nENTRYPOINT ["python"]\n'
    )
    (tmp_path / "learner.py").write_text("print('learner')\n")
    return tmp_path


@pytest.fixture(autouse=True)
def _tidy(client: docker.DockerClient) -> Iterator[None]:
    yield
    for tag in (TAG, "continual-suite-test/other:latest"):
        try:
            client.images.remove(tag)
        except docker.errors.ImageNotFound:
            continue


def run(client: docker.DockerClient, image: str, *argv: str) -> str:
    output = client.containers.run(
        image, list(argv), entrypoint="", network_mode="none", read_only=True, user="61234:61234", remove=True
    )
    return str(output.decode())


@pytest.mark.docker
def test_the_base_image_runs_the_sdk_on_a_read_only_root(client: docker.DockerClient) -> None:
    image = ensure_base("numpy")
    code = "import suite.sdk, numpy, safetensors; print(suite.sdk.__cached__)"
    cached = run(client, image, "python", "-c", code).strip()
    assert run(client, image, "ls", cached).strip() == cached, "compiled beforehand"


@pytest.mark.docker
def test_a_base_image_of_the_same_recipe_is_left_alone(client: docker.DockerClient) -> None:
    lines: list[str] = []
    assert ensure_base("numpy") == ensure_base("numpy", lines.append)
    assert lines == []


@pytest.mark.docker
def test_the_same_folder_gives_the_same_image_and_a_change_another(client: docker.DockerClient, author: Path) -> None:
    first = build_image(author, TAG)
    assert build_image(author, TAG) == first
    (author / "learner.py").write_text("print('other')\n")
    other = build_image(author, "continual-suite-test/other:latest")
    assert fingerprint(inspect_image(other)) != fingerprint(inspect_image(first))


@pytest.mark.docker
def test_a_second_tag_has_the_same_fingerprint(client: docker.DockerClient, author: Path) -> None:
    client.images.get(build_image(author, TAG)).tag("continual-suite-test/other", "latest")
    assert fingerprint(inspect_image(TAG)) == fingerprint(inspect_image("continual-suite-test/other:latest"))


@pytest.mark.docker
def test_what_is_built_passes_the_check_of_its_configuration(client: docker.DockerClient, author: Path) -> None:
    check_config(inspect_image(build_image(author, TAG)))


@pytest.mark.docker
def test_the_manifest_label_is_what_the_image_says_of_itself(client: docker.DockerClient, author: Path) -> None:
    asked: list[str] = []

    def describe(image: str) -> str:
        asked.append(run(client, image, "python", "/app/learner.py").strip())
        return MANIFEST

    image = build_with_manifest(author, TAG, describe)
    labels = inspect_image(TAG)["Config"]["Labels"]
    assert asked == ["learner"]
    assert labels[MANIFEST_LABEL] == MANIFEST
    assert labels[PROTOCOL_LABEL] == "1.0"
    assert inspect_image(TAG)["Id"] == image


def refuse(_image: str) -> str:
    raise AssertionError("the learner is asked although nothing changed")


@pytest.mark.docker
def test_an_unchanged_folder_is_not_asked_again_and_a_changed_one_is(client: docker.DockerClient, author: Path) -> None:
    image = build_with_manifest(author, TAG, lambda _image: MANIFEST)
    assert build_with_manifest(author, TAG, refuse) == image
    (author / "learner.py").write_text("print('other')\n")
    assert build_with_manifest(author, TAG, lambda _image: "{}") != image
    assert inspect_image(TAG)["Config"]["Labels"][MANIFEST_LABEL] == "{}"


@pytest.mark.docker
def test_a_learner_that_does_not_answer_leaves_the_tag_as_it_was(client: docker.DockerClient, author: Path) -> None:
    def fail(_image: str) -> str:
        raise ImageError("no answer")

    with pytest.raises(ImageError, match="no answer"):
        build_with_manifest(author, TAG, fail)
    with pytest.raises(ImageError, match="no image"):
        inspect_image(TAG)


@pytest.mark.docker
def test_a_manifest_too_long_for_a_label_is_refused(client: docker.DockerClient, author: Path) -> None:
    with pytest.raises(ImageError, match="longer than"):
        build_with_manifest(author, TAG, lambda _image: "x" * (64 * 1024 + 1))
    build_with_manifest(author, TAG, lambda _image: '"' * (64 * 1024))
    assert len(inspect_image(TAG)["Config"]["Labels"][MANIFEST_LABEL]) == 64 * 1024


@pytest.mark.docker
def test_build_arguments_reach_the_dockerfile(client: docker.DockerClient, author: Path) -> None:
    (author / "Dockerfile").write_text("FROM continual-suite/base-numpy\nARG METHOD\nENV CHOSEN=$METHOD\n")
    image = build_image(author, TAG, build_args={"METHOD": "replay"})
    assert "CHOSEN=replay" in inspect_image(image)["Config"]["Env"]


@pytest.mark.docker
def test_a_build_has_no_network(client: docker.DockerClient, author: Path) -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
    (author / "Dockerfile").write_text(f'FROM continual-suite/base-numpy\nRUN python -c "{code}"\n')
    with pytest.raises(ImageError, match="failed") as failed:
        build_image(author, TAG)
    assert "Network is unreachable" in failed.value.log_tail


@pytest.mark.docker
def test_a_failed_build_shows_the_end_of_its_log_without_escapes(client: docker.DockerClient, author: Path) -> None:
    (author / "Dockerfile").write_text(
        "FROM continual-suite/base-numpy\nRUN printf '\\033[31mthe reason\\033[0m\\n\\007'; exit 3\n"
    )
    lines: list[str] = []
    with pytest.raises(ImageError, match="code: 3") as failed:
        build_image(author, TAG, on_line=lines.append)
    assert "the reason" in failed.value.log_tail
    assert "the reason" in lines
    assert "\033" not in failed.value.log_tail + "".join(lines)


@pytest.mark.docker
def test_a_malformed_dockerfile_is_an_image_error(client: docker.DockerClient, author: Path) -> None:
    (author / "Dockerfile").write_text("FROM continual-suite/base-numpy\nINSTALL everything\n")
    with pytest.raises(ImageError, match="INSTALL"):
        build_image(author, TAG)


@pytest.mark.docker
def test_a_base_of_ones_own_finds_the_wheels_to_install_from(client: docker.DockerClient, author: Path) -> None:
    (author / "Dockerfile").write_text("FROM python:3.11-slim-bookworm\nCOPY suite-wheels /wheels\n")
    image = build_image(author, TAG)
    wheels = run(client, image, "ls", "/wheels").split()
    assert learner_wheel_name() in wheels
    assert {name.partition("-")[0] for name in wheels} >= {"numpy", "pydantic", "safetensors"}


@pytest.mark.docker
@pytest.mark.parametrize("reference", ["continual-suite-test/absent:latest", "Not A Name", ""])
def test_an_image_that_is_not_there_is_an_image_error(client: docker.DockerClient, reference: str) -> None:
    with pytest.raises(ImageError) as missing:
        inspect_image(reference)
    assert missing.value.remedy


def no_engine(monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> InfrastructureError:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(InfrastructureError, match="No Docker engine") as unreachable:
        call()
    return unreachable.value


# the SDK drops a socket that could not be connected without closing it
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_without_an_engine_the_machine_is_to_blame(monkeypatch: pytest.MonkeyPatch, author: Path) -> None:
    assert "make engine" in no_engine(monkeypatch, lambda: inspect_image("any")).remedy
    no_engine(monkeypatch, lambda: build_image(author, TAG))
    gc.collect()
