"""What a container is created with: every limit of G6, the same for both phases.

Two launches that are equal give two specifications that differ in the cell's name, folder and user id only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.types import DeviceRequest, DriverConfig, LogConfig, Mount, Ulimit

from suite.sandbox.docker.labels import labels_of
from suite.sandbox.environment import learner_environment
from suite.sandbox.interface import MIB, Inside, Isolation, Launch

INSIDE = Inside()
IN = "/suite/in"
SCRATCH = "/tmp"  # noqa: S108  (inside the container)

_SCRATCH_INODES = 100_000
_OUT_SLACK_BYTES = 16 * MIB
_OUT_SLACK_INODES = 16
_SENTRY_PIDS = 1024
"""gVisor's own threads count against the limit of the container that they serve."""


@dataclass(frozen=True)
class Placement:
    """Where and as whom one cell lives."""

    token: str
    uid: int
    inputs: Path | None
    """The folder that is mounted at IN; None: an engine-made volume that inputs are copied into."""
    isolation: Isolation = Isolation.DOCKER

    @property
    def name(self) -> str:
        """Name of the container."""
        return f"continual-suite-{self.token}"


def container_spec(launch: Launch, image: str, place: Placement) -> dict[str, Any]:
    """Arguments for `create_container`, with `host_config` as arguments for `create_host_config`."""
    return {
        "image": image,
        "name": place.name,
        "user": f"{place.uid}:{place.uid}",
        "environment": _environment(launch),
        "hostname": "learner",
        "domainname": "",
        "labels": labels_of(place.token, launch.labels),
        "stdin_open": True,
        "tty": False,
        "healthcheck": {"test": ["NONE"]},
        "host_config": _host_config(launch, place),
    }


def _environment(launch: Launch) -> dict[str, str]:
    variables = learner_environment(launch, SCRATCH)
    if launch.gpu is None:
        variables["NVIDIA_VISIBLE_DEVICES"] = "void"  # an engine may hand out GPUs to whatever does not refuse them
    else:
        variables["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
    return variables


def _host_config(launch: Launch, place: Placement) -> dict[str, Any]:
    limits = launch.limits
    is_gvisor = place.isolation is Isolation.GVISOR
    config: dict[str, Any] = {
        "network_mode": "none",
        "dns": ["127.0.0.1"],  # else resolv.conf names the host's servers and domain
        "dns_search": ["."],
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": limits.pids + (_SENTRY_PIDS if is_gvisor else 0),
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "nano_cpus": limits.cpus * 10**9,
        "shm_size": limits.shm_bytes,
        "ulimits": [
            Ulimit(name="nofile", soft=limits.open_files, hard=limits.open_files),
            Ulimit(name="fsize", soft=limits.file_bytes, hard=limits.file_bytes),
            Ulimit(name="core", soft=0, hard=0),
        ],
        "ipc_mode": "private",
        "log_config": LogConfig(type=LogConfig.types.NONE),
        "init": True,
        "oom_score_adj": 500,
        "tmpfs": {
            # Triton and inductor load what they compile from here, so it is not noexec.
            SCRATCH: f"rw,exec,nosuid,nodev,size={limits.scratch_bytes},nr_inodes={_SCRATCH_INODES},mode=1777"
        },
        "mounts": _mounts(launch, place),
    }
    if launch.cpuset is not None:
        config["cpuset_cpus"] = cpu_list(launch.cpuset)
    if launch.gpu is not None:
        config["device_requests"] = [
            DeviceRequest(device_ids=[launch.gpu], capabilities=[["gpu", "compute", "utility"]])
        ]
    if is_gvisor:
        config["runtime"] = "runsc"
    return config


def _mounts(launch: Launch, place: Placement) -> list[Mount]:
    labels = labels_of(place.token, launch.labels)
    # Room beyond the limit, so that an output over it can be seen and called by its name.
    size = launch.limits.output_bytes + _OUT_SLACK_BYTES
    inodes = launch.limits.output_files + _OUT_SLACK_INODES
    options = {
        "type": "tmpfs",
        "device": "tmpfs",
        "o": f"size={size},nr_inodes={inodes},uid={place.uid},gid={place.uid},mode=0700,noexec,nosuid,nodev",
    }
    out = Mount(
        INSIDE.out, None, type="volume", no_copy=True, labels=labels, driver_config=DriverConfig("local", options)
    )
    if place.inputs is None:
        inputs = Mount(IN, None, type="volume", no_copy=True, labels=labels)
    else:
        inputs = Mount(IN, str(place.inputs), type="bind", read_only=True, propagation="rprivate")
    mounts = [out, inputs]
    if launch.weights is not None:
        weights = str(launch.weights.absolute())
        mounts.append(Mount(INSIDE.weights, weights, type="bind", read_only=True, propagation="rprivate"))
    return mounts


def cpu_list(cpuset: tuple[int, ...]) -> str:
    """CPUs as the engine writes them."""
    return ",".join(map(str, cpuset))
