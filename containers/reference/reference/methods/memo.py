"""MEMO: A Model or 603 Exemplars (Zhou et al., 2023)."""

from __future__ import annotations

from reference.methods.der import DER
from reference.networks.branched import BranchedNetwork
from reference.spaces import STRENGTH, scratch_space
from suite.sdk import Choice


class MEMO(DER):
    """DER that repeats only the last stage; stem and earlier stages are shared and keep training.

    So the frozen last stages see inputs that drift, as in PyCIL (train_base; option train_general = false freezes the
    shared part after the first task). The exemplar count is the track's, not the enlarged one that MEMO's paper trades
    for parameters. exemplar_batch_size is the batch of feature extraction; it changes nothing but speed. Scores: linear
    head (option head = "nme").
    """

    name = "MEMO"
    description = "A shared general part, one specialised last stage per task."
    space = scratch_space(
        {"lambda_aux": STRENGTH, "exemplar_batch_size": Choice([16, 32, 64, 128, 256])},
        head="linear",
        train_general=True,
    )

    def build(self, classes: int) -> BranchedNetwork:
        return BranchedNetwork.shared(self.backbone(), classes)

    def grow(self, seen: int) -> None:
        later = self.seen > 0
        super().grow(seen)
        if later and not self.option("train_general"):
            self.network.general.requires_grad_(False)

    @property
    def eval_batch(self) -> int:
        """Images per batch of feature extraction."""
        return int(self.option("exemplar_batch_size"))
