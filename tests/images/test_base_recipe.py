"""Where the recipe of the base images is found, what is downloaded for it, and torchvision on the CPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import docker
import pytest

import suite
from suite.errors import InfrastructureError
from suite.sandbox.images import ensure_base
from suite.sandbox.images.recipe import Recipe, find_recipe
from suite.sandbox.images.wheelhouse import wheelhouse

CHECKOUT = Path(__file__).parents[2]


def python(code: str, *path: Path, **environment: str) -> str:
    joined = os.pathsep.join(map(str, path))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": "/nowhere", "PYTHONPATH": joined, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_in_a_checkout_the_recipe_lies_beside_the_code() -> None:
    recipe = find_recipe()
    assert recipe == Recipe(CHECKOUT / "containers" / "base", CHECKOUT / "constraints.txt", CHECKOUT / ".whl")
    assert (recipe.base / "libraries" / "Dockerfile").is_file()
    assert (recipe.base / "learner" / "Dockerfile").is_file()


def test_in_an_installed_package_it_lies_inside_and_wheels_go_to_the_cache(tmp_path: Path) -> None:
    copy = tmp_path / "suite"
    shutil.copytree(Path(suite.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(CHECKOUT / "containers" / "base", copy / "sandbox" / "images" / "base")
    shutil.copy(CHECKOUT / "constraints.txt", copy / "sandbox" / "images")
    code = "from suite.sandbox.images.recipe import find_recipe as f; r = f(); print(r.base, r.constraints, r.wheels)"
    images, cache = copy / "sandbox" / "images", tmp_path / "cache"
    expected = f"{images / 'base'} {images / 'constraints.txt'} {cache / 'continual-suite' / 'wheels'}"
    assert python(code, tmp_path, XDG_CACHE_HOME=str(cache)) == expected


def test_an_installation_without_recipe_says_so(tmp_path: Path) -> None:
    shutil.copytree(Path(suite.__file__).parent, tmp_path / "suite", ignore=shutil.ignore_patterns("__pycache__"))
    code = """
from suite.errors import UsageError
from suite.sandbox.images.recipe import find_recipe
try:
    find_recipe()
except UsageError as error:
    print(error)
"""
    assert "Reinstall" in python(code, tmp_path)


def test_a_failed_download_leaves_nothing_and_blames_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    recipe = Recipe(tmp_path, CHECKOUT / "constraints.txt", tmp_path / "wheels")
    with pytest.raises(InfrastructureError, match="Downloading wheels"):
        wheelhouse("numpy", recipe)
    assert list(recipe.wheels.iterdir()) == []


FAKE_TORCH = """
declared = []
class ops:
    def load_library(path):
        if "broken" in open(path).read():
            raise OSError("compiled for CUDA")
class library:
    class Library:
        def __init__(self, *names): print(*names)
        def define(self, schema): declared.append(schema.partition("(")[0])
"""


@pytest.mark.parametrize(("compiled", "expected"), [("broken", "['nms', 'qnms']"), ("fine", "[]")])
def test_missing_operators_are_declared_before_torchvision_runs(tmp_path: Path, compiled: str, expected: str) -> None:
    (tmp_path / "torch.py").write_text(FAKE_TORCH)
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "_C.so").write_text(compiled)
    (tmp_path / "torchvision" / "__init__.py").write_text("import torch; print(torch.declared)\n")
    hook = CHECKOUT / "containers" / "base" / "libraries"
    code = f"""
import site, sys, importlib.util
site.addsitedir({str(hook)!r})
assert importlib.util.find_spec("torchvision") is not None
assert "torch" not in sys.modules, "a look alone imports nothing"
import torchvision
"""
    printed = python(code, tmp_path).splitlines()
    assert printed[-1] == expected
    assert printed[:-1] == (["torchvision FRAGMENT"] if compiled == "broken" else [])


@pytest.mark.docker
def test_the_torch_image_has_working_models_and_transforms(client: docker.DockerClient) -> None:
    code = """
import timm, torch
from timm.data import create_transform
from torchvision.transforms import v2
model = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=3)
print(tuple(model(v2.Resize(32)(torch.zeros(2, 3, 16, 16))).shape))
"""
    output = client.containers.run(
        ensure_base("torch"),
        ["python", "-c", code],
        network_mode="none",
        read_only=True,
        tmpfs={"/tmp": "size=16m"},
        user="61234:61234",
        environment={"USER": "learner", "HOME": "/tmp"},
        remove=True,
    )
    assert output.decode().strip() == "(2, 3)"
