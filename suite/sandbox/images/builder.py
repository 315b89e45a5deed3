"""One build on the engine: no network, nothing pulled, the classic builder; the end of its log is kept for the
error."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any

from suite.errors import ImageError, InfrastructureError
from suite.sandbox.images.engine import engine
from suite.sandbox.text import printable

_LOG_LINES = 40
_LINE_LENGTH = 500
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

OnLine = Callable[[str], None]
"""Receives each line of a build's log."""


def run_build(
    context: IO[bytes],
    *,
    tag: str | None = None,
    labels: Mapping[str, str] | None = None,
    build_args: Mapping[str, str] | None = None,
    on_line: OnLine | None = None,
) -> str:
    """Builds the tar file `context` and gives its id ("sha256:..."); `tag` is moved only if the build succeeds.

    Labels come last, so that a build which differs in them alone takes every layer from the cache.

    Raises ImageError, with the end of the log, when the build fails; InfrastructureError when the machine does.
    """
    import docker

    with engine() as client:
        try:
            events = client.api.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                labels=dict(labels or {}),
                buildargs=dict(build_args or {}),
                network_mode="none",
                pull=False,
                rm=True,
                forcerm=True,
                decode=True,
            )
            return _follow(events, on_line)
        except docker.errors.APIError as error:
            raise _failed(" ".join(_lines(str(error.explanation))), []) from error
        except docker.errors.DockerException as error:
            raise InfrastructureError(
                f"The engine could not be asked to build: {error}.", "See `suite doctor`."
            ) from error


def _follow(events: Iterable[Mapping[str, Any]], on_line: OnLine | None) -> str:
    log: deque[str] = deque(maxlen=_LOG_LINES)
    image_id = error = ""
    for event in events:
        for line in _lines(str(event.get("stream", ""))):
            log.append(line)
            if on_line:
                on_line(line)
        image_id = (event.get("aux") or {}).get("ID", image_id)
        # the stream is read to its end even so: an answer that is left half-read keeps its connection open
        error = error or " ".join(_lines(str(event.get("error", ""))))
    if error:
        raise _failed(error, log)
    if not image_id:
        raise InfrastructureError(
            "The engine ended a build without a result.", "Look at the engine's log and build again."
        )
    return str(image_id)


def _lines(text: str) -> Iterator[str]:
    """The printable lines of a piece of log: what a build prints reaches a terminal, and must not steer it."""
    for line in _ESCAPE.sub("", text).splitlines():
        if shown := printable(line).rstrip():
            yield shown[:_LINE_LENGTH]


def _failed(reason: str, log: Iterable[str]) -> ImageError | InfrastructureError:
    reason, tail = reason.strip()[:_LINE_LENGTH], "\n".join(log)
    if "no space left on device" in reason or "no space left on device" in tail:
        return InfrastructureError("The disk filled up during a build.", "`docker system prune` frees what is unused.")
    if "pull access denied" in reason or "manifest unknown" in reason or "lookup " in reason:
        remedy = "A FROM line names an image that is not on this machine: pull, build or load it first."
    else:
        remedy = (
            "See the end of the build log; builds have no network, so whatever is installed must be in the context."
        )
    return ImageError(f"The build failed: {reason}.", remedy, tail)
