"""The wheel of `suite.protocol` and `suite.sdk` that goes into images: versioned by the protocol, the same bytes on
every machine.

Only the two packages are in it, so that a change elsewhere in the suite changes no image. It is put together here
rather than by a build back end, because that has to work from an installed suite too, and because a wheel is a small
zip file.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import zipfile
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path

from suite.protocol import PROTOCOL_VERSION

LEARNER_DISTRIBUTION = "continual-suite-learner"
"""Name of the distribution inside images."""

LEARNER_REQUIREMENTS = ("numpy>=1.26", "pydantic>=2.10", "safetensors>=0.5")
"""What `suite.protocol` and `suite.sdk` need to run."""

_PACKAGES = ("protocol", "sdk")
_INIT = (
    b'"""The part of the continual-learning suite that runs beside a learner: `suite.protocol` and `suite.sdk`."""\n'
)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can hold


def learner_wheel_name() -> str:
    """File name of the wheel of this protocol version."""
    return f"{LEARNER_DISTRIBUTION.replace('-', '_')}-{PROTOCOL_VERSION}-py3-none-any.whl"


def write_learner_wheel(folder: Path) -> Path:
    """Writes the wheel into `folder`; the path of the file.

    The bytes depend on the source of the two packages and on nothing else: members are sorted and stored uncompressed
    (compressors differ between machines), times and modes are fixed.
    """
    target = folder / learner_wheel_name()
    members = _members()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members, key=lambda name: (".dist-info/" in name, name)):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3  # Unix, whatever writes it
            info.external_attr = 0o100644 << 16
            archive.writestr(info, members[name])
    return target


def _members() -> dict[str, bytes]:
    package = importlib.resources.files("suite")
    members = {"suite/__init__.py": _INIT, "suite/py.typed": b""}
    for name in _PACKAGES:
        members.update(_sources(package / name, f"suite/{name}"))
    info = f"{LEARNER_DISTRIBUTION.replace('-', '_')}-{PROTOCOL_VERSION}.dist-info"
    members[f"{info}/METADATA"] = _metadata().encode()
    members[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: continual-suite\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    members[f"{info}/RECORD"] = _record(members, f"{info}/RECORD").encode()
    return members


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _sources(entry, f"{prefix}/{entry.name}")
        elif entry.name.endswith((".py", ".typed")):
            yield f"{prefix}/{entry.name}", entry.read_bytes()


def _metadata() -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {LEARNER_DISTRIBUTION}",
        f"Version: {PROTOCOL_VERSION}",
        "Summary: The protocol and the SDK of the continual-learning suite, for use inside images",
        "License: Apache-2.0",
        "Requires-Python: >=3.11",
        *(f"Requires-Dist: {requirement}" for requirement in LEARNER_REQUIREMENTS),
    ]
    return "\n".join(lines) + "\n"


def _record(members: dict[str, bytes], own_name: str) -> str:
    """The RECORD of the wheel format: path, sha256 in unpadded URL-safe base 64, size; its own line is left open."""
    lines = []
    for name in sorted(members):
        digest = base64.urlsafe_b64encode(hashlib.sha256(members[name]).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(members[name])}")
    return "\n".join([*lines, f"{own_name},,"]) + "\n"
