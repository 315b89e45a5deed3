"""Builds an author's directory into an image, with the learner's manifest as a label."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from suite.errors import ImageError
from suite.protocol import PROTOCOL_VERSION
from suite.sandbox.images.base import base_variants, ensure_base
from suite.sandbox.images.builder import OnLine, run_build
from suite.sandbox.images.context import write_context
from suite.sandbox.images.engine import inspect_image
from suite.sandbox.images.identity import MANIFEST_LABEL, PROTOCOL_LABEL, fingerprint
from suite.sandbox.images.recipe import find_recipe
from suite.sandbox.images.wheel import write_learner_wheel
from suite.sandbox.images.wheelhouse import wheelhouse

WHEELS_FOLDER = "suite-wheels"
"""Folder in the context of an image with a base of its own: the learner wheel and what it needs, for CPython 3.11."""

_MAX_MANIFEST_BYTES = 64 << 10  # labels travel in the address of a request


def build_image(
    context_dir: Path,
    tag: str,
    *,
    labels: Mapping[str, str] | None = None,
    build_args: Mapping[str, str] | None = None,
    on_line: OnLine | None = None,
) -> str:
    """Builds the Dockerfile of `context_dir` under `tag` and gives the image's id.

    The base images that its FROM lines name are made first. If they name none, the context holds `suite-wheels` to
    install from: `pip install --no-index --find-links suite-wheels continual-suite-learner`. `on_line` receives the
    log.

    Raises ImageError when the build fails, with the end of the log; InfrastructureError when the engine or a download
    does.
    """
    with _context(context_dir, on_line) as context:
        return run_build(context, tag=tag, labels=labels, build_args=build_args, on_line=on_line)


def build_with_manifest(
    context_dir: Path,
    tag: str,
    describe: Callable[[str], str],
    *,
    build_args: Mapping[str, str] | None = None,
    on_line: OnLine | None = None,
) -> str:
    """Like `build_image`; what `describe(image id)` answers (the manifest as JSON) becomes the image's manifest label.

    The image is built twice, the second time from cached layers; `tag` is set only at the end. Where `tag` is already
    the same image, `describe` is not asked again.

    Raises what `build_image` and `describe` raise, and ImageError for a manifest over 64 KiB.
    """
    with _context(context_dir, on_line) as context:
        image_id = run_build(context, build_args=build_args, on_line=on_line)
        if (present := _same_but_labels(tag, image_id)) is not None:
            return present
        manifest = describe(image_id)
        if len(manifest.encode()) > _MAX_MANIFEST_BYTES:
            raise ImageError(
                f"The manifest is longer than {_MAX_MANIFEST_BYTES} bytes.", "Declare fewer values in the space."
            )
        context.seek(0)
        labels = {MANIFEST_LABEL: manifest, PROTOCOL_LABEL: PROTOCOL_VERSION}
        return run_build(context, tag=tag, labels=labels, build_args=build_args, on_line=on_line)


def _same_but_labels(tag: str, image_id: str) -> str | None:
    """The id of the image `tag` if it has a manifest, of this protocol, and is otherwise what `image_id` is."""
    try:
        present = inspect_image(tag)
    except ImageError:
        return None
    labels = present["Config"].get("Labels") or {}
    if MANIFEST_LABEL not in labels or labels.get(PROTOCOL_LABEL) != PROTOCOL_VERSION:
        return None
    bare = [{**it, "Config": {**it["Config"], "Labels": {}}} for it in (present, inspect_image(image_id))]
    return str(present["Id"]) if fingerprint(bare[0]) == fingerprint(bare[1]) else None


@contextmanager
def _context(author: Path, on_line: OnLine | None) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as context:
        dockerfile = author / "Dockerfile"
        variants = base_variants(dockerfile.read_text(errors="replace")) if dockerfile.is_file() else set()
        for variant in sorted(variants):
            ensure_base(variant, on_line)
        own_base = dockerfile.is_file() and not variants
        wheels = (
            [*wheelhouse("numpy", find_recipe()).glob("*.whl"), write_learner_wheel(Path(folder))] if own_base else []
        )
        write_context(author, context, {f"{WHEELS_FOLDER}/{path.name}": path for path in wheels})
        context.seek(0)
        yield context
