"""DualPrompt-PGP (Qiao et al., 2024, ICLR): prompt gradients are projected off what earlier tasks use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from reference.pretrained.dualprompt import DualPrompt
from reference.pretrained.spaces import space_of
from suite.protocol.errors import SuiteError
from suite.protocol.messages import LearnResult
from suite.sdk import Choice, Space, Task

_SAMPLES = 768
_COMPONENTS = 50  # of the literal form's principal component analysis
_CLIP = 1.0


class PGP(DualPrompt):
    """DualPrompt whose key prefixes and prompt keys move only where earlier tasks have no energy.

    A prefix key acts through its products with the attention's queries, so the space to avoid is spanned by the queries
    of the block (mean over tokens), and for prompt keys by the image queries. `projection = "literal"` takes, as the
    original code does, the singular vectors of the samples' Gram matrix instead, which only fits the gradients when a
    task has at least as many images as the ViT is wide.
    """

    name = "PGP"
    description = "DualPrompt with prompt gradient projection"
    space: ClassVar[Space] = space_of(
        {name: d for name, d in DualPrompt.space.root.items() if isinstance(d, Choice)},
        {"prompt_energy": Choice([0.4, 0.5, 0.6]), "key_energy": Choice([0.95, 0.97, 0.99])},
        projection="feature",
    )
    carried: ClassVar[tuple[str, ...]] = ("bases",)

    def setup(self) -> None:
        super().setup()
        self.bases: dict[str, Tensor] = {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        # copies: a tensor read from a file may lie unaligned, and then products differ in the last bit
        self.bases = {name: basis.to(self.device, copy=True) for name, basis in self.bases.items()}

    def learn(self, task: Task) -> None:
        super().learn(task)
        self.stage("post")
        images = task.images[torch.randperm(len(task.images))[:_SAMPLES].sort().values.numpy()]
        for name, rows in self.representations(images).items():
            energy = self.option("key_energy" if name == "keys" else "prompt_energy")
            rows = self.literal(rows) if self.option("projection") == "literal" else rows
            basis = self.bases.get(name, rows.new_zeros(rows.shape[1], 0))
            self.bases = {**self.bases, name: extended(basis.to(rows), rows, energy)}

    def representations(self, images: Any) -> dict[str, Tensor]:
        """What the projected parameters are multiplied with, [n, D] each: image queries, and queries of each block."""
        blocks = [*self.g_blocks, *self.e_blocks]
        kept: dict[int, Tensor] = {}

        def keep(block: int) -> Callable[[nn.Module, Any, Tensor], None]:
            def hook(_module: nn.Module, _inputs: Any, out: Tensor) -> None:
                kept[block] = out[..., : self.width].mean(1)

            return hook

        def queries_of(pixels: Tensor) -> Tensor:
            queries: Tensor = self.backbone(pixels)
            vit: Any = self.backbone.vit
            handles = [vit.blocks[b].attn.qkv.register_forward_hook(keep(b)) for b in blocks]
            try:
                self.prefixed(pixels, self.choice(queries))
            finally:
                for handle in handles:
                    handle.remove()
            return torch.stack([queries, *(kept[b] for b in blocks)], 1)

        gathered = self.gather(images, queries_of)
        return {name: gathered[:, i] for i, name in enumerate(["keys", *map(str, blocks)])}

    def literal(self, rows: Tensor) -> Tensor:
        """R R' of the samples' leading principal components: [n, n], used as if n were the features' width."""
        if len(rows) != self.width:
            raise SuiteError(
                f"The literal projection needs {self.width} images in each task, and this one has {len(rows)}.",
                "Use projection = 'feature'.",
            )
        left, values, _ = torch.linalg.svd(rows - rows.mean(0), full_matrices=False)
        reduced: Tensor = (left * values)[:, :_COMPONENTS]
        return reduced @ reduced.T

    def before_step(self, trained: nn.Module) -> None:
        """Clip, then g <- g - g U U' for the key half of all prefixes and for the prompt keys (eq. 14)."""
        nn.utils.clip_grad_norm_(trained.parameters(), _CLIP)
        if not self.bases:
            return
        pool = self.network.body
        for parameter, blocks in ((pool.g, self.g_blocks), *((expert, self.e_blocks) for expert in pool.e)):
            for index, block in enumerate(blocks):
                if parameter.grad is not None:
                    parameter.grad[index, 0] = self.projected(parameter.grad[index, 0], str(block))
        for key in pool.keys:
            if key.grad is not None:
                key.grad = self.projected(key.grad, "keys")

    def report(self) -> LearnResult:
        result = super().report()
        held = sum(basis.numel() for basis in self.bases.values())
        return result.model_copy(update={"stored_parameters": result.stored_parameters + held})

    def projected(self, gradient: Tensor, name: str) -> Tensor:
        """The gradient [..., D] without its part in the space `name`."""
        basis = self.bases[name].to(gradient)
        return gradient - gradient @ basis @ basis.T


def extended(basis: Tensor, rows: Tensor, energy: float) -> Tensor:
    """An orthonormal basis [D, r] and as many more directions as capture `energy` of the rows' squares [n, D].

    What the basis captures already counts; new directions are the leading singular vectors of the rest (as in GPM).
    """
    x, known = rows.double(), basis.double()
    wanted = energy * x.square().sum() - (x @ known).square().sum()
    if wanted <= 0:
        return basis
    _, values, directions = torch.linalg.svd(x - x @ known @ known.T, full_matrices=False)
    count = int((values.square().cumsum(0) < wanted).sum()) + 1
    return torch.cat([known, directions[:count].T], 1).to(basis).contiguous()  # as it comes back from a state
