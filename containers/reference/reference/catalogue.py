"""The reference learners by slug. A slug is also the tag of its image and the name of its submission manifest."""

from __future__ import annotations

SCRATCH: dict[str, str] = {
    "replay": "reference.methods.replay:Replay",
}
"""Methods trained from scratch: ResNet-32 or ResNet-18."""

PRETRAINED: dict[str, str] = {}
"""Methods on a pretrained vision transformer."""

METHODS: dict[str, str] = {**SCRATCH, **PRETRAINED}
"""slug -> module:Class; a string, so that reading the catalogue imports no PyTorch."""
