"""Where the recipe of the base images lies: in a checkout beside the code, in an installed package inside it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from suite.errors import UsageError


@dataclass(frozen=True)
class Recipe:
    """Files that the base images are made from, and the folder that downloaded wheels are kept in."""

    base: Path
    constraints: Path
    wheels: Path


def find_recipe() -> Recipe:
    """The recipe of this installation.

    Raises UsageError when neither the checkout nor the package holds it.
    """
    package = Path(__file__).parent
    checkout = package.parents[2]
    if (checkout / "containers" / "base" / "libraries").is_dir() and (checkout / "constraints.txt").is_file():
        return Recipe(checkout / "containers" / "base", checkout / "constraints.txt", checkout / ".whl")
    if (package / "base" / "libraries").is_dir() and (package / "constraints.txt").is_file():
        return Recipe(package / "base", package / "constraints.txt", _cache_folder() / "wheels")
    raise UsageError(
        "This installation does not hold the recipe of the base images (containers/base, constraints.txt).",
        f"Reinstall continual-suite for {sys.executable} from a wheel or a complete checkout.",
    )


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "continual-suite"
