"""Looks around from inside a cell and prints what it sees as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import sys
from pathlib import Path
from typing import Any


def attempt(action: Any) -> str:
    try:
        action()
    except OSError as error:
        return type(error).__name__ + ":" + str(error.errno)
    return "done"


def connect(address: tuple[str, int]) -> None:
    with contextlib.closing(socket.create_connection(address, timeout=2)):
        pass


def write(path: str) -> str:
    return attempt(lambda: Path(path, "probe").write_bytes(b"x"))


def fill(folder: str, mebibytes: int) -> str:
    def writes() -> None:
        for index in range(mebibytes):
            Path(folder, f"fill{index}").write_bytes(b"x" * (1 << 20))

    try:
        return attempt(writes)
    finally:
        for path in Path(folder).glob("fill*"):
            path.unlink()


def look_at(path: str) -> list[Any]:
    status = Path(path).lstat()
    return [oct(status.st_mode), status.st_uid == os.getuid(), status.st_mtime, status.st_nlink]


def status_fields() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    wanted = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Groups", "Cpus_allowed_list")
    return {name: fields.get(name, "").strip() for name in wanted}


def hide(value: str) -> str:
    for secret in (os.environ.get("HOSTNAME", ""), str(os.getuid())):
        value = value.replace(secret, "*") if secret else value
    return value


def mounts() -> list[list[str]]:
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted([line[4], line[5], *map(hide, line[line.index("-") + 1 :][:1])] for line in lines)


def main() -> None:
    inside = [path for path in ("/suite/in/data", "/suite/in/state", "/suite/in/items") if Path(path).is_dir()]
    files = sorted(str(p) for folder in inside for p in Path(folder).rglob("*"))
    seen = {
        "uid": os.getuid(),
        "gid": os.getgid(),
        "environment": dict(sorted(os.environ.items())),
        "hostname": socket.gethostname(),
        "cwd": str(Path.cwd()),
        "status": status_fields(),
        "mounts": mounts(),
        "files": {path: look_at(path) for path in ["/suite/in", *inside, *files]},
        "limits": {
            name: resource.getrlimit(getattr(resource, name))
            for name in ("RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_CORE")
        },
        "interfaces": sorted(name for _, name in socket.if_nameindex()),
        "reach": {
            "internet": attempt(lambda: connect(("1.1.1.1", 443))),
            "metadata": attempt(lambda: connect(("169.254.169.254", 80))),
            "names": attempt(lambda: socket.getaddrinfo("example.org", 443)),
            "engine": attempt(lambda: Path("/var/run/docker.sock").stat()),
        },
        "write": {
            path: write(path)
            for path in (
                "/",
                "/app",
                "/etc",
                "/suite",
                "/suite/in",
                "/suite/in/data",
                "/var/tmp",
                "/dev",
                "/tmp",
                "/dev/shm",
            )
        },
        "fill": {"/tmp": fill("/tmp", 17), "/dev/shm": fill("/dev/shm", 9)},
        "chmod": attempt(lambda: Path("/suite/in/data/00000.npy").chmod(0o777)),
        "processes": len([path for path in Path("/proc").iterdir() if path.name.isdigit()]),
    }
    json.dump(seen, sys.stdout)
    print()


main()
