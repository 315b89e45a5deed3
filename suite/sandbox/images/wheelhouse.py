"""The wheels that base images are built from: downloaded once on the host, because builds have no network."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal, TypeAlias

from suite.errors import InfrastructureError, UsageError
from suite.sandbox.images.recipe import Recipe
from suite.sandbox.images.wheel import LEARNER_REQUIREMENTS
from suite.sandbox.text import quote

Variant: TypeAlias = Literal["numpy", "torch"]
"""Which base image: with numpy only, or with PyTorch, torchvision and timm as well."""

VARIANTS: tuple[Variant, ...] = ("numpy", "torch")

EXTRAS: dict[Variant, tuple[str, ...]] = {"numpy": (), "torch": ("torch", "torchvision", "timm")}
"""What is installed beside the learner wheel and its requirements; the constraints file pins the versions."""

_NEWEST_GLIBC = 36  # glibc 2.36 is what Debian bookworm, the distribution of the base image, comes with
_OLDEST_GLIBC = 5  # the first that a manylinux tag names
_MACHINES = {"AMD64": "x86_64", "arm64": "aarch64"}  # what other systems call them
_DOWNLOAD_SECONDS = 3600


def wheelhouse(variant: Variant, recipe: Recipe) -> Path:
    """The folder with all wheels of `variant`, dependencies included; downloads them when the folder is not there yet.

    Its name holds a hash of the requirements and constraints. Wheels are for CPython 3.11 on Linux, whatever runs this.
    torch is the CPU or the CUDA build, as the package index offers it.

    Raises InfrastructureError when the download fails, UsageError when there is no pip to download with.
    """
    tags, packages = _platform_arguments(), (*LEARNER_REQUIREMENTS, *EXTRAS[variant])
    wanted = [*packages, *tags, recipe.constraints.read_text()]
    folder = recipe.wheels / f"{variant}-{hashlib.sha256(chr(0).join(wanted).encode()).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    recipe.wheels.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=recipe.wheels, prefix=".download-") as part:
        _download([*tags, "-c", str(recipe.constraints), *packages], Path(part))
        Path(part).chmod(0o755)
        for outdated in recipe.wheels.glob(f"{variant}-*"):
            shutil.rmtree(outdated, ignore_errors=True)
        shutil.move(part, folder)
        Path(part).mkdir()  # for the context manager to remove
    return folder


def _download(arguments: list[str], folder: Path) -> None:
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode != 0:
        raise UsageError(
            f"{sys.executable} has no pip to download wheels with.", f"Run `{sys.executable} -m ensurepip`."
        )
    command = [*pip, "download", "--quiet", "--disable-pip-version-check", "--dest", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(
            f"Downloading wheels took more than {_DOWNLOAD_SECONDS} s.", "Try again on a faster connection."
        ) from error
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if line.strip()][-3:]
        raise InfrastructureError(
            "Downloading wheels for the base images failed: " + quote(" / ".join(last)),
            "Check the connection to the package index (pip config list) and run the same command again.",
        )


def _platform_arguments() -> list[str]:
    machine = _MACHINES.get(platform.machine(), platform.machine())
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(_NEWEST_GLIBC, _OLDEST_GLIBC - 1, -1)]
    platforms += [f"manylinux2014_{machine}", f"manylinux2010_{machine}", f"manylinux1_{machine}", f"linux_{machine}"]
    arguments = ["--only-binary=:all:", "--python-version=3.11", "--implementation=cp"]
    return [*arguments, "--abi=cp311", "--abi=abi3", "--abi=none", *(f"--platform={name}" for name in platforms)]
