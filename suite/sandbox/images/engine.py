"""The connection to the Docker engine, and how its refusals are told apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from suite.errors import ImageError, InfrastructureError
from suite.sandbox.text import quote

if TYPE_CHECKING:
    import docker

_SECONDS = 600  # an engine may be silent for as long as one step of a build takes


@contextmanager
def engine() -> Iterator[docker.DockerClient]:
    """A client of the engine that the environment names (DOCKER_HOST), closed at the end.

    Raises InfrastructureError when no engine answers, at the start or in the middle.
    """
    import docker
    import requests
    import urllib3

    lost = (
        requests.ConnectionError,
        requests.Timeout,
        requests.exceptions.ChunkedEncodingError,
        urllib3.exceptions.HTTPError,
    )
    try:
        client = docker.from_env(timeout=_SECONDS)
    except docker.errors.DockerException as error:
        raise _unreachable(error) from error
    try:
        yield client
    except lost as error:
        raise _unreachable(error) from error
    finally:
        client.close()


def _unreachable(error: Exception) -> InfrastructureError:
    return InfrastructureError(
        f"No Docker engine answers ({error}).",
        "Start it (`make engine` in a checkout) or set DOCKER_HOST; see `suite doctor`.",
    )


def inspect_image(reference: str) -> dict[str, Any]:
    """What `docker image inspect` says of a name, a tag or an id.

    Raises ImageError when there is no such image, InfrastructureError when no engine answers.
    """
    import docker

    with engine() as client:
        try:
            attributes: dict[str, Any] = client.images.get(reference).attrs
        except (docker.errors.ImageNotFound, docker.errors.NullResource) as error:
            raise ImageError(
                f"There is no image {reference!r}.", "Build it (`suite build`), or pull or load it first."
            ) from error
        except docker.errors.APIError as error:
            raise ImageError(
                f"The engine refuses the image name {reference!r}: {quote(str(error.explanation))}.", "Use NAME:TAG."
            ) from error
    return attributes
