"""What a learner outside an image is: `module:Class` or `file.py:Class`, and the sources that decide what it does."""

from __future__ import annotations

import hashlib
import importlib.machinery
import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from suite.errors import ImageError
from suite.protocol import PROTOCOL_VERSION
from suite.sandbox.text import quote
from suite.seeds import content_hash

_DISTRIBUTIONS = ("numpy", "pydantic", "safetensors", "timm", "torch", "torchvision")


@dataclass(frozen=True)
class Target:
    """A learner class and the files behind it."""

    argument: str
    """For `python -m suite.sdk`, with an absolute path."""
    class_name: str
    root: Path
    """The folder that names of sources are relative to."""
    sources: tuple[Path, ...]
    """Every `.py` file of the module's top package; for a file or a lone module, every one of its folder."""


def search_path() -> list[str]:
    """Where modules are looked for: the working folder first, as with `python -m`."""
    return list(dict.fromkeys([str(Path.cwd()), *(str(Path(entry).absolute()) for entry in sys.path if entry)]))


def parse_target(image: str) -> Target:
    """Find a learner's sources without importing them. Raises ImageError when there are none."""
    where, _, class_name = image.partition(":")
    if not where or not class_name.isidentifier():
        raise ImageError(f'"{quote(image)}" does not name a learner.', "Write module:Class or file.py:Class.")
    if where.endswith(".py"):
        path = Path(where).absolute()
        if not path.is_file():
            raise ImageError(f'There is no file "{quote(where)}".', "Write module:Class or file.py:Class.")
        return Target(f"{path}:{class_name}", class_name, path.parent, tuple(sorted(path.parent.glob("*.py"))))
    root, sources = _module_sources(where)
    return Target(image, class_name, root, sources)


def _module_sources(name: str) -> tuple[Path, tuple[Path, ...]]:
    top = name.partition(".")[0]
    spec = importlib.machinery.PathFinder.find_spec(top, search_path())
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        raise ImageError(f'There is no module "{quote(top)}".', "Run from the folder that holds it.")
    if spec.submodule_search_locations:
        folders = [Path(entry) for entry in spec.submodule_search_locations]
        return folders[0].parent, tuple(sorted(path for folder in folders for path in folder.rglob("*.py")))
    origin = Path(str(spec.origin))
    return origin.parent, (origin,)


def fingerprint_source(target: Target) -> str:
    """sha256 (hex) over the class, its sources by name and content, and the versions of what it runs with.

    Modules outside the target's own package are known by the versions of the distributions that learners are made of,
    no further: this identity is for development and is never ranked.
    """
    return content_hash(
        {
            "class": target.argument.rpartition("/")[2],
            "sources": {
                _name(path, target.root): hashlib.sha256(path.read_bytes()).hexdigest() for path in target.sources
            },
            "python": platform.python_version(),
            "protocol": PROTOCOL_VERSION,
            "versions": {name: version for name in _DISTRIBUTIONS if (version := _version(name))},
        }
    )


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
