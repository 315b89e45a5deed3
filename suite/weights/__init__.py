"""Pretrained weights: what is known, shipped or stored, how it gets there, and which classes it has seen before."""

from suite.weights.fetching import add, fetch
from suite.weights.known import KNOWN, KnownWeights
from suite.weights.manifest import Pretraining, WeightsManifest
from suite.weights.overlaps import Overlap, overlap, pretraining_classes
from suite.weights.pretraining import Recipe, pretrain
from suite.weights.store import (
    WEIGHTS_VARIABLE,
    Weights,
    WeightsInfo,
    find,
    listed,
    verify,
    weights_folder,
    weights_root,
)

__all__ = [
    "KNOWN",
    "WEIGHTS_VARIABLE",
    "KnownWeights",
    "Overlap",
    "Pretraining",
    "Recipe",
    "Weights",
    "WeightsInfo",
    "WeightsManifest",
    "add",
    "fetch",
    "find",
    "listed",
    "overlap",
    "pretrain",
    "pretraining_classes",
    "verify",
    "weights_folder",
    "weights_root",
]
