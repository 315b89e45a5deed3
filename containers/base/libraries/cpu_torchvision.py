"""Lets torchvision be imported where its compiled operators cannot be loaded: its wheel was made for CUDA and torch is
the CPU build.

On import torchvision registers shape functions for `torchvision::nms` and `torchvision::qnms` whether or not these
operators exist, and stops if they do not. This module declares the two (without a kernel) right before torchvision's
own code runs. Models and transforms then work; `torchvision.ops.nms` and `torchvision.io` do not. Where the compiled
operators load, nothing is changed.

`cpu_torchvision.pth` installs the hook at interpreter start; until something imports torchvision it costs one
comparison per import.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[Any] = []  # a torch.library.Library takes its operators away when it is collected


def _declare_operators(folder: Path) -> None:
    import torch

    try:
        for compiled in folder.glob("_C*.so"):
            torch.ops.load_library(compiled)
    except OSError:
        library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        library.define("nms" + _SCHEMA)
        library.define("qnms" + _SCHEMA)
        _declared.append(library)


class TorchvisionFinder:
    """Finds torchvision as usual, and declares the missing operators before its code runs."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The usual spec of torchvision with a longer `exec_module`; None (ask the next finder) for all other names."""
        if name != "torchvision":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None or spec.origin is None:
            return spec
        folder, run = Path(spec.origin).parent, spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            _declare_operators(folder)
            run(module)

        vars(spec.loader)["exec_module"] = exec_module
        return spec


def install() -> None:
    """Puts the hook first in `sys.meta_path`, once."""
    if TorchvisionFinder not in sys.meta_path:
        sys.meta_path.insert(0, TorchvisionFinder)
