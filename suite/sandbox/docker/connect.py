"""The engine: its connection, what it offers, and its failures as errors of the suite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import docker
import docker.errors
import requests
import urllib3.exceptions

from suite.errors import InfrastructureError
from suite.sandbox.text import quote

_SECONDS = 60
_MAPPED_IDS = 65536  # what a remapped engine gives its containers


@dataclass(frozen=True)
class Engine:
    """A connected engine."""

    client: docker.DockerClient
    runtimes: frozenset[str]
    is_podman: bool
    """Podman's compatible socket: it ignores requests for GPUs and does not tell which kill was for memory."""
    uids: range = field(default=range(1 << 30, (1 << 30) + (1 << 24)))
    """User ids that containers may be given; far from those of people and services."""

    @property
    def api(self) -> Any:
        """The low-level interface."""
        return self.client.api

    def close(self) -> None:
        """Close idle connections."""
        self.client.close()


def connect() -> Engine:
    """Connect to the engine that the environment names (DOCKER_HOST). Raises InfrastructureError if none answers."""
    with engine_errors("answer"):
        client = docker.from_env(timeout=_SECONDS)
        info, version = client.info(), client.version()
    components = [str(part.get("Name", "")) for part in version.get("Components") or []]
    options = " ".join(info.get("SecurityOptions") or [])
    is_remapped = "name=userns" in options or "name=rootless" in options
    return Engine(
        client=client,
        runtimes=frozenset(info.get("Runtimes") or {}),
        is_podman=any("podman" in name.lower() for name in components),
        **({"uids": range(_MAPPED_IDS // 4, _MAPPED_IDS - 1)} if is_remapped else {}),
    )


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Turn failures of the engine into InfrastructureError; `doing` completes 'The Docker engine did not ...'."""
    try:
        yield
    except docker.errors.APIError as error:
        raise InfrastructureError(
            f"The Docker engine did not {doing}: {quote(str(error.explanation or error))}", "See `suite doctor`."
        ) from error
    except (docker.errors.DockerException, requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        raise InfrastructureError(
            f"The Docker engine did not {doing}: {quote(str(error))}",
            "Start it (`make engine` in a checkout) or set DOCKER_HOST; see `suite doctor`.",
        ) from error
