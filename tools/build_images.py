"""Builds the base images, the example and the reference learners; what is up to date is left alone.

    build_images.py [NAME...]      NAME: ncm, or the slug of a reference learner; all of them without a name

Images are `suite-ncm:latest` and `suite-reference:SLUG`. Exit code as of `suite`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from suite.errors import LearnerError, SuiteError, UsageError
from suite.evaluation.authoring import build_learner
from suite.sandbox.images import VARIANTS, ensure_base

CONTAINERS = Path(__file__).parents[1] / "containers"


@dataclass(frozen=True)
class Recipe:
    """One image: the folder that it is built from, its tag and the build arguments."""

    folder: Path
    tag: str
    arguments: dict[str, str] = field(default_factory=dict)


def recipes() -> dict[str, Recipe]:
    """All images by name."""
    sys.path.insert(0, str(CONTAINERS / "reference"))
    from reference.catalogue import METHODS

    found = {"ncm": Recipe(CONTAINERS / "examples" / "ncm", "suite-ncm:latest")}
    for slug in METHODS:
        found[slug] = Recipe(CONTAINERS / "reference", f"suite-reference:{slug}", {"METHOD": slug})
    return found


def build(names: list[str]) -> None:
    """Build base images and the named ones, a line each."""
    known = recipes()
    if unknown := sorted(set(names) - set(known)):
        raise UsageError(f"no image is named {', '.join(unknown)}", f"choose from {', '.join(known)}")
    for variant in VARIANTS:
        with timed(f"continual-suite/base-{variant}"):
            ensure_base(variant)
    for name in names or known:
        recipe = known[name]
        with timed(recipe.tag):
            build_learner(recipe.folder, recipe.tag, recipe.arguments, lambda _line: None)


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Print what is being built, and the seconds that it took."""
    print(f"== image {name} ...", end=" ", flush=True)
    start = time.monotonic()
    yield
    print(f"{time.monotonic() - start:.1f} s", flush=True)


def main() -> int:
    """Run, and print an error as `suite` does: one line, with what to do, after the end of the build's log."""
    try:
        build(sys.argv[1:])
    except SuiteError as error:
        if isinstance(error, LearnerError) and error.log_tail:
            print(error.log_tail, file=sys.stderr)
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
