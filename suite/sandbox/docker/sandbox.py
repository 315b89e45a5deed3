"""The Docker runtime."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import docker.errors
from pydantic import ValidationError

from suite.errors import ImageError, InfrastructureError, UsageError
from suite.protocol import Manifest, ProtocolError, decode
from suite.sandbox.channel import explain
from suite.sandbox.docker.connect import connect, engine_errors
from suite.sandbox.docker.container import DockerCell
from suite.sandbox.docker.inputs import shares_files
from suite.sandbox.docker.labels import CELL_LABEL, run_labels
from suite.sandbox.docker.spec import Placement
from suite.sandbox.folders import Folders
from suite.sandbox.intake import remove_tree
from suite.sandbox.interface import Identity, Isolation, Launch

RUNSC = "runsc"


class DockerSandbox:
    """Starts learners as containers of the engine that DOCKER_HOST names; `root` is where their files lie meanwhile.

    Raises InfrastructureError when no engine answers, UsageError when it does not offer the isolation.
    """

    def __init__(self, isolation: Isolation = Isolation.DOCKER, root: Path | None = None) -> None:
        self.isolation = isolation
        self._engine = connect()
        self._folders = Folders(root, "docker")
        self._lock = threading.Lock()
        self._shares_files: bool | None = None
        if isolation is Isolation.GVISOR and RUNSC not in self._engine.runtimes:
            self._engine.close()
            raise UsageError(
                f"The Docker engine does not offer gVisor's runtime {RUNSC!r}.",
                "Install it and restart dockerd with --add-runtime, or use --sandbox docker.",
            )

    def identify(self, image: str) -> Identity:
        """The fingerprint of an image's configuration and layers, and the manifest of its label.

        `Identity.image` is the image's id, which no tag can move. Raises ImageError for an image without the label:
        what says nothing of itself is not started.
        """
        from suite.sandbox.images import MANIFEST_LABEL, fingerprint

        found = self._checked(image)
        label = ((found.get("Config") or {}).get("Labels") or {}).get(MANIFEST_LABEL)
        if label is None:
            raise ImageError(
                f"{image} is no learner: it has no label {MANIFEST_LABEL}.",
                "Build it with `suite build`, which sets the label to what the learner answers to `describe`.",
            )
        return Identity(str(found["Id"]), fingerprint(found), _manifest(label))

    def start(self, launch: Launch) -> DockerCell:
        """See `Sandbox.start`."""
        image = str(self._checked(launch.image)["Id"])
        if launch.gpu is not None and self._engine.is_podman:
            raise UsageError("Podman's Docker socket ignores requests for a GPU.", "Use Docker for learners on GPUs.")
        is_shared = self._sees_our_files(image)
        if launch.weights is not None and not is_shared:
            raise InfrastructureError(
                "The Docker engine does not see this machine's files, so weights cannot be mounted.",
                "Use an engine on this machine.",
            )
        folder = self._folders.make(launch.labels)
        try:
            uid = self._engine.uids[secrets.randbelow(len(self._engine.uids))]
            place = Placement(folder.name, uid, folder / "in" if is_shared else None, self.isolation)
            return DockerCell(self._engine, launch, image, place, folder)
        except BaseException:
            remove_tree(folder)
            raise

    def _checked(self, image: str) -> dict[str, Any]:
        from suite.sandbox.images import check_config, inspect_image

        found = inspect_image(image)
        check_config(found)
        return found

    def _sees_our_files(self, image: str) -> bool:
        with self._lock:
            if self._shares_files is None:
                self._shares_files = shares_files(self._engine, self._folders, image)
            return self._shares_files

    def reap(self, is_dead: Callable[[dict[str, str]], bool]) -> int:
        """Remove containers, volumes and folders of dead runs: those with the suite's marks, and nothing else."""
        api, reaped = self._engine.api, 0
        marked = {"label": CELL_LABEL}
        with engine_errors("list what is left of dead runs"):
            for container in api.containers(all=True, filters=marked):
                labels = run_labels(container.get("Labels"))
                name = f"/continual-suite-{container['Labels'][CELL_LABEL]}"
                if labels is not None and name in container["Names"] and is_dead(labels):
                    with contextlib.suppress(docker.errors.NotFound):
                        api.remove_container(container["Id"], force=True, v=True)
                        reaped += 1
            for volume in api.volumes(filters=marked | {"dangling": True}).get("Volumes") or []:
                labels = run_labels(volume.get("Labels"))
                if labels is not None and is_dead(labels):
                    with contextlib.suppress(docker.errors.NotFound):
                        api.remove_volume(volume["Name"], force=True)
                        reaped += 1
        return reaped + self._folders.reap(is_dead)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folders.close()
        self._engine.close()


def _manifest(label: str) -> Manifest:
    try:
        return Manifest.model_validate(decode(label.encode()))
    except (ProtocolError, ValidationError) as error:
        why = explain(error) if isinstance(error, ValidationError) else error.message
        raise ImageError(f"The image's manifest label is malformed: {why}", "Build it with `suite build`.") from error
