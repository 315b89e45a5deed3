"""The steps of a container's life, and whose fault it is when one fails."""

from __future__ import annotations

import contextlib
import logging
import time

import docker.errors
import requests

from suite.errors import ImageError, InfrastructureError
from suite.sandbox.docker.connect import Engine, engine_errors
from suite.sandbox.docker.spec import Placement, container_spec
from suite.sandbox.interface import Launch
from suite.sandbox.metering import Gauge, cgroup_gauge
from suite.sandbox.text import quote

_log = logging.getLogger(__name__)
_PAUSE_SECONDS = 10.0


def create(engine: Engine, launch: Launch, image: str, place: Placement) -> str:
    """Create a container; its id. Raises ImageError if the image is gone, InfrastructureError otherwise."""
    spec = container_spec(launch, image, place)
    with engine_errors("create a container"):
        try:
            spec["host_config"] = engine.api.create_host_config(**spec["host_config"])
            return str(engine.api.create_container(**spec)["Id"])
        except docker.errors.ImageNotFound as error:
            raise ImageError(f'There is no image "{quote(launch.image)}".', "Build it with `suite build`.") from error


def start(engine: Engine, container: str, launch: Launch) -> None:
    """Start a container. Raises ImageError when its image is at fault, InfrastructureError when the machine is."""
    with engine_errors("start a container"):
        try:
            engine.api.start(container)
        except docker.errors.APIError as error:
            if _is_of_the_image(error):
                raise ImageError(
                    f'The image "{quote(launch.image)}" does not start: {quote(str(error.explanation))}',
                    "Check its ENTRYPOINT, and that it has no files of its own under /suite and /tmp.",
                ) from error
            raise


def _is_of_the_image(error: docker.errors.APIError) -> bool:
    """Whether a start failed because of what an image holds: no entry point, or files where its mounts belong.

    A GPU's hook fails with the same words, and is the machine's.
    """
    text = str(error.explanation or "")
    if "hook" in text or "nvidia" in text:
        return False
    return bool(error.status_code == requests.codes.bad_request) or "error mounting" in text


def gauge(engine: Engine, container: str) -> Gauge:
    """Reads the control group of a running container; nothing where this machine does not see it."""
    with engine_errors("inspect a container"):
        pid = int(engine.api.inspect_container(container)["State"].get("Pid") or 0)
    return (cgroup_gauge(pid, container) if pid else None) or (lambda: None)


def pause(engine: Engine, container: str) -> None:
    """Freeze a container. Version 1 of control groups cannot freeze what is throttled or forking at that moment."""
    deadline = time.monotonic() + _PAUSE_SECONDS
    with engine_errors("pause a container"):
        while True:
            try:
                engine.api.pause(container)
            except docker.errors.APIError as error:
                if "unable to freeze" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return


def unpause(engine: Engine, container: str) -> None:
    """Thaw a container that is to be removed: gVisor's takes ten seconds to kill while it is frozen."""
    try:
        with engine_errors("resume a container"):
            engine.api.unpause(container)
    except InfrastructureError as error:
        _log.debug("%s", error)


def kill(engine: Engine, container: str) -> None:
    """End a container whose attach stream is shut. That it has ended already, or the engine has, is no error here."""
    try:
        with engine_errors("kill a container"):
            engine.api.kill(container)
    except InfrastructureError as error:
        _log.debug("%s", error)


def remove(engine: Engine, container: str) -> None:
    """Kill and remove a container with its volumes. What an engine that is gone cannot remove is left to `reap`."""
    try:
        with engine_errors("remove a container"), contextlib.suppress(docker.errors.NotFound):
            engine.api.remove_container(container, force=True, v=True)
    except InfrastructureError as error:
        _log.warning("Container %s is left behind: %s", container[:12], error)
