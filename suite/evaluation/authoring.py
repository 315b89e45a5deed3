"""From an author's folder to an image that can be submitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from suite.evaluation.answers import checked
from suite.protocol import DescribeParams, Manifest
from suite.sandbox import Identity, Launch, Sandbox, open_sandbox
from suite.submissions import slug_of_image


def build_learner(
    folder: Path, tag: str | None, arguments: Mapping[str, str], on_line: Callable[[str], None]
) -> Identity:
    """Build `folder` into an image whose label is what the learner answers to `describe`; returns what it is.

    Raises ImageError for a failed build and for an image that does not answer.
    """
    from suite.sandbox.images import build_with_manifest

    name = tag or f"{slug_of_image(folder.resolve().name)}:latest"
    with open_sandbox("docker") as sandbox:
        build_with_manifest(
            folder,
            name,
            lambda image: ask_manifest(sandbox, image).model_dump_json(),
            build_args=arguments,
            on_line=on_line,
        )
        return sandbox.identify(name)


def ask_manifest(sandbox: Sandbox, image: str) -> Manifest:
    """What the learner in an image answers to `describe`."""
    launch = Launch(image)
    with closing(sandbox.start(launch)) as cell:
        return checked(cell.call("describe", DescribeParams(), launch.limits.setup_seconds), Manifest)
