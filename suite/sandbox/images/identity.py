"""What an image is, for the record: the fingerprint that results carry, and the configuration that is refused.

Both read what `docker image inspect` says, and touch no engine.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from suite.errors import ImageError
from suite.sandbox.text import quote
from suite.seeds import content_hash

MANIFEST_LABEL = "continual-suite.manifest"
"""Label with the learner's manifest: the JSON that `describe` answers."""

PROTOCOL_LABEL = "continual-suite.protocol"
"""Label with the version of the learner protocol."""

_REFUSED_VARIABLES = ("LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD")
_REFUSED_PREFIX = "NVIDIA_"
_REFUSED_FOLDERS = ("/dev", "/proc", "/sys")
_REBUILD = (
    "An image cannot unset what it inherits: copy the files into an empty image and state the environment anew, as in"
    " `FROM vendor/image AS vendor`, `FROM scratch`, `COPY --from=vendor / /`, `ENV PATH=...`."
)


def fingerprint(inspected: Mapping[str, Any]) -> str:
    """sha256 (hex) of all that decides what a learner's container runs: configuration subset and layer diff ids.

    Tags, build time and labels of others have no part in it. The diff ids are those of the layers as they were built: a
    rebuild from cached layers keeps the fingerprint, a rebuild without a cache need not, because files get new times.
    """
    config = inspected.get("Config") or {}
    labels = config.get("Labels") or {}
    return content_hash(
        {
            "cmd": config.get("Cmd") or [],
            "entrypoint": config.get("Entrypoint") or [],
            "env": config.get("Env") or [],
            "labels": {name: labels[name] for name in (MANIFEST_LABEL, PROTOCOL_LABEL) if name in labels},
            "layers": inspected["RootFS"]["Layers"],
            "user": config.get("User") or "",
            "working_dir": config.get("WorkingDir") or "",
        }
    )


def check_config(inspected: Mapping[str, Any]) -> None:
    """Refuses a configuration that reaches past the sandbox or that the sandbox cannot honour.

    Variables that act on the engine's own helpers (dynamic loader, NVIDIA runtime: they would choose the GPUs), a
    working directory in a kernel file system (how descriptors leaked in the past), declared volumes (writable, without
    a cap) and health checks (run by the engine, beside the learner).

    Raises ImageError with the way out.
    """
    config = inspected.get("Config") or {}
    for entry in config.get("Env") or []:
        name = str(entry).partition("=")[0]
        if name in _REFUSED_VARIABLES or name.startswith(_REFUSED_PREFIX):
            raise ImageError(f"The image sets the environment variable {quote(name)}, which is refused.", _REBUILD)
    folder = posixpath.normpath("/" + str(config.get("WorkingDir") or ""))
    if any((folder.lstrip("/") + "/").startswith(refused[1:] + "/") for refused in _REFUSED_FOLDERS):
        raise ImageError(
            f"The image's working directory is {quote(folder)}, which is refused.", "Set another WORKDIR, such as /app."
        )
    if config.get("Volumes"):
        raise ImageError(
            "The image declares volumes, which are refused.",
            f"Remove VOLUME from the Dockerfile; if it is inherited: {_REBUILD}",
        )
    check = (config.get("Healthcheck") or {}).get("Test") or []
    if check and check != ["NONE"]:
        raise ImageError(
            "The image declares a health check, which is refused.", "Put `HEALTHCHECK NONE` into the Dockerfile."
        )
    if not (config.get("Entrypoint") or config.get("Cmd")):
        raise ImageError(
            "The image starts nothing.",
            'Set an entry point, such as ENTRYPOINT ["python", "-m", "suite.sdk", "learner:Mine"].',
        )
