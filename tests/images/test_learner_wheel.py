"""The learner wheel: the same bytes everywhere, protocol and SDK only, and it installs."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import suite
from suite.protocol import PROTOCOL_VERSION
from suite.sandbox.images import learner_wheel_name, write_learner_wheel
from suite.sandbox.images.wheel import LEARNER_REQUIREMENTS

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return write_learner_wheel(tmp_path)


def test_its_name_is_that_of_the_protocol_version(wheel: Path) -> None:
    assert wheel.name == learner_wheel_name() == f"continual_suite_learner-{PROTOCOL_VERSION}-py3-none-any.whl"


def test_equal_sources_give_equal_bytes_whatever_their_times_modes_and_place(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(Path(suite.__file__).parent, elsewhere / "suite", ignore=shutil.ignore_patterns("images.*"))
    for path in elsewhere.rglob("*.py"):
        path.chmod(0o600)
        os.utime(path, (1, 1_000_000_000))
    code = "from pathlib import Path; from suite.sandbox.images import write_learner_wheel as w; w(Path('.'))"
    environment = {"PYTHONPATH": str(elsewhere), "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "PATH": os.environ["PATH"]}
    other = tmp_path / "other"
    other.mkdir()
    subprocess.run([sys.executable, "-c", code], cwd=other, env=environment, check=True)
    assert (other / wheel.name).read_bytes() == wheel.read_bytes()


def test_it_holds_protocol_and_sdk_and_nothing_else_of_the_suite(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    code = {name for name in names if ".dist-info/" not in name}
    package = Path(suite.__file__).parent
    expected = {
        f"suite/{path.relative_to(package)}" for part in ("protocol", "sdk") for path in (package / part).rglob("*.py")
    }
    assert code == expected | {"suite/__init__.py", "suite/py.typed"}
    assert [name.rpartition("/")[2] for name in names if ".dist-info/" in name] == ["METADATA", "RECORD", "WHEEL"]


def test_every_member_is_recorded_with_its_hash_and_size(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    record_name = next(name for name in archive.namelist() if name.endswith("/RECORD"))
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read(record_name).decode()))}
    assert set(rows) == set(archive.namelist())
    for name, (recorded, size) in rows.items():
        if name != record_name:
            content = archive.read(name)
            padded = recorded.removeprefix("sha256=") + "="
            assert base64.urlsafe_b64decode(padded) == hashlib.sha256(content).digest()
            assert int(size) == len(content)


def test_it_asks_for_the_same_versions_as_the_suite() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert set(LEARNER_REQUIREMENTS) <= set(project["dependencies"])


def test_pip_installs_it_and_the_sdk_answers_without_the_rest_of_the_suite(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(target)]
    subprocess.run([*command, str(wheel)], check=True)
    code = "import suite.sdk, importlib.util as u; print(suite.__file__); assert u.find_spec('suite.errors') is None"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=target,
        env={"PYTHONPATH": str(target), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(target))
