"""The variables that a learner is started with: equal launches, equal variables."""

from __future__ import annotations

from suite.sandbox.interface import Launch

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def learner_environment(launch: Launch, scratch: str) -> dict[str, str]:
    """Variables for every runtime; `scratch` is the one writable folder beside the output.

    Thread counts follow the CPUs that are granted, not those that are seen; hashing and cuBLAS are made deterministic
    (they can be only from outside). An unknown uid has no name and no home, so both are given, and the caches of
    PyTorch's compilers would otherwise be looked for under that name.
    """
    return {
        "HOME": scratch,
        "TMPDIR": scratch,
        "USER": "learner",
        "LOGNAME": "learner",
        "LANG": "C.UTF-8",
        "XDG_CACHE_HOME": f"{scratch}/cache",
        "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
        "TRITON_CACHE_DIR": f"{scratch}/triton",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        **dict.fromkeys(_THREAD_VARIABLES, str(launch.limits.cpus)),
    }
