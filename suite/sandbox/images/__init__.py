"""Learner images: the learner wheel, the base images, builds without network, fingerprints and refused
configurations."""

from __future__ import annotations

from suite.sandbox.images.base import ensure_base
from suite.sandbox.images.build import build_image, build_with_manifest
from suite.sandbox.images.engine import inspect_image
from suite.sandbox.images.identity import MANIFEST_LABEL, PROTOCOL_LABEL, check_config, fingerprint
from suite.sandbox.images.wheel import learner_wheel_name, write_learner_wheel
from suite.sandbox.images.wheelhouse import VARIANTS, Variant

__all__ = [
    "MANIFEST_LABEL",
    "PROTOCOL_LABEL",
    "VARIANTS",
    "Variant",
    "build_image",
    "build_with_manifest",
    "check_config",
    "ensure_base",
    "fingerprint",
    "inspect_image",
    "learner_wheel_name",
    "write_learner_wheel",
]
