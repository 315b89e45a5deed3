"""The two images that learner images start from, made once and again only when their recipe changes.

Each consists of two: the libraries (large, slow to build) and, on top, the learner wheel, so that a change of the SDK
costs seconds.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from suite.errors import ImageError
from suite.protocol import PROTOCOL_VERSION
from suite.sandbox.images.builder import OnLine, run_build
from suite.sandbox.images.context import write_context
from suite.sandbox.images.engine import engine, inspect_image
from suite.sandbox.images.identity import PROTOCOL_LABEL
from suite.sandbox.images.recipe import find_recipe
from suite.sandbox.images.wheel import LEARNER_REQUIREMENTS, write_learner_wheel
from suite.sandbox.images.wheelhouse import EXTRAS, VARIANTS, Variant, wheelhouse

PARENT = "python:3.11-slim-bookworm"
"""What both base images start from."""

RECIPE_LABEL = "continual-suite.recipe"
"""Label of a base image with the hash of all that it was made from."""

_STAGE_LABEL = "continual-suite.stage"
_FROM = re.compile(
    r"^\s*FROM\s+(?:--platform=\S+\s+)?continual-suite/base-(\w+)(?::\S+)?\s*(?:AS\s+\S+\s*)?$", re.I | re.M
)


def base_variants(dockerfile: str) -> set[Variant]:
    """The base images that the FROM lines of a Dockerfile name."""
    named = {name.lower() for name in _FROM.findall(dockerfile)}
    return {variant for variant in VARIANTS if variant in named}


def ensure_base(variant: Variant, on_line: OnLine | None = None) -> str:
    """The id of `continual-suite/base-VARIANT:PROTOCOL`; downloads wheels and builds when there is none or its recipe
    has changed.

    Raises ImageError when `PARENT` is neither here nor to be had, or the build fails; InfrastructureError when a
    download or the engine does.
    """
    recipe = find_recipe()
    _ensure_parent()
    wheels = sorted(wheelhouse(variant, recipe).glob("*.whl"))
    # an index never changes a file, so names stand for the content of what was downloaded
    name = f"continual-suite/libraries-{variant}"
    libraries = _ensure(
        name,
        recipe.base / "libraries",
        {f"wheels/{path.name}": path for path in wheels},
        {"PACKAGES": " ".join([*LEARNER_REQUIREMENTS, *EXTRAS[variant]]), "STAGE": name},
        [inspect_image(PARENT)["Id"], *(path.name for path in wheels)],
        on_line,
    )
    with tempfile.TemporaryDirectory() as folder:
        wheel = write_learner_wheel(Path(folder))
        return _ensure(
            f"continual-suite/base-{variant}",
            recipe.base / "learner",
            {f"wheels/{wheel.name}": wheel},
            {"LIBRARIES": libraries},
            [hashlib.sha256(wheel.read_bytes()).hexdigest()],
            on_line,
        )


def _ensure(
    name: str,
    author: Path,
    extra: dict[str, Path],
    build_args: Mapping[str, str],
    inputs: list[str],
    on_line: OnLine | None,
) -> str:
    """The id of the image `name`, built unless there is one of the same recipe: files of `author`, build arguments and
    `inputs`."""
    sources = [f"{path.name}\0{path.read_text()}" for path in sorted(author.iterdir()) if path.is_file()]
    wanted = hashlib.sha256("\0".join([*sources, *map(str, sorted(build_args.items())), *inputs]).encode()).hexdigest()
    tag = f"{name}:{PROTOCOL_VERSION}"
    try:
        present = inspect_image(tag)
    except ImageError:
        present = {}
    if present and (present["Config"].get("Labels") or {}).get(RECIPE_LABEL) == wanted:
        return str(present["Id"])
    with tempfile.TemporaryFile() as context:
        write_context(author, context, extra)
        context.seek(0)
        labels = {RECIPE_LABEL: wanted, PROTOCOL_LABEL: PROTOCOL_VERSION}
        image_id = run_build(context, tag=tag, labels=labels, build_args=build_args, on_line=on_line)
    with engine() as client:
        client.images.get(image_id).tag(name, "latest")
        # the stage that holds all wheels a second time
        client.images.prune({"label": f"{_STAGE_LABEL}={name}"})
    return image_id


def _ensure_parent() -> None:
    import docker

    with engine() as client:
        try:
            client.images.get(PARENT)
        except docker.errors.ImageNotFound:
            try:
                client.images.pull(PARENT)
            except docker.errors.APIError as error:
                raise ImageError(
                    f"The image {PARENT} is not on this machine, and no registry gave it.",
                    "`make base-image` in a checkout makes a stand-in, or load it: docker save, docker load.",
                ) from error
