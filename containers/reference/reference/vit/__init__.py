"""timm's vision transformers as backbones: loading, preprocessing, and forwards with something attached."""

from __future__ import annotations

from reference.vit.attached import Attached, Prefix, run
from reference.vit.backbone import Architecture, Backbone, Input, load_backbone, read_backbone
from reference.vit.preprocess import Preprocess

__all__ = [
    "Architecture",
    "Attached",
    "Backbone",
    "Input",
    "Prefix",
    "Preprocess",
    "load_backbone",
    "read_backbone",
    "run",
]
