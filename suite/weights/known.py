"""The weights that tracks name and that can be fetched."""

from __future__ import annotations

from dataclasses import dataclass

from suite.weights.manifest import Pretraining


@dataclass(frozen=True)
class KnownWeights:
    """A ViT of timm: its name there is its name here."""

    name: str
    licence: str
    source: str
    remark: str
    pretraining: Pretraining


def _of_timm(name: str, licence: str, remark: str, pretraining: Pretraining) -> KnownWeights:
    return KnownWeights(name, licence, f"https://huggingface.co/timm/{name}", remark, pretraining)


KNOWN: dict[str, KnownWeights] = {
    known.name: known
    for known in (
        _of_timm(
            "vit_base_patch16_224.augreg_in21k_ft_in1k",
            "Apache-2.0",
            "The backbone of GTEP's pretrained tracks. ImageNet-R's and -A's classes lie in its pretraining.",
            Pretraining(data_set="ImageNet-21k, then ImageNet-1k", vocabulary="imagenet-21k"),
        ),
        _of_timm(
            "vit_base_patch16_224.augreg_in21k",
            "Apache-2.0",
            "The backbone of CLDyB.",
            Pretraining(data_set="ImageNet-21k", vocabulary="imagenet-21k"),
        ),
        _of_timm(
            "vit_base_patch16_clip_224.openai",
            "MIT",
            "Pretrained on image-text pairs: which classes it has seen is not known.",
            Pretraining(data_set="WIT-400M (not public)"),
        ),
    )
}
