"""Supervised pretraining of the small ViT on a data set of this suite: the weights `vit_glyph`, and variants."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suite.data import DataSet
from suite.errors import DataError
from suite.seeds import canonical_json
from suite.weights.manifest import Pretraining, WeightsManifest
from suite.weights.network import ARCHITECTURE, build
from suite.weights.store import Weights, file_sha256, keep

if TYPE_CHECKING:
    from torch import Tensor

Report = Callable[[int, int, float], None]  # steps done, steps in all, loss


@dataclass(frozen=True)
class Recipe:
    """AdamW with warm-up and cosine; all numbers that the weights depend on, beside the data."""

    passes: int = 300_000  # images seen, with repetition
    batch: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.05
    smoothing: float = 0.1
    warm_up: float = 0.03  # share of the steps
    plain_until: float = 0.2  # up to this share of the steps all inputs are plain strokes (see `strokes`),
    raw_from: float = 0.5  # from this share on none is
    least_crop: float = 0.7  # area of the random crop
    flip: bool = False
    seed: int = 0


def silent(done: int, total: int, loss: float) -> None:
    """Say nothing."""


def pretrain(
    data_set: DataSet,
    name: str,
    root: Path | None = None,
    recipe: Recipe = Recipe(),
    report: Report = silent,
) -> Weights:
    """Train the small ViT to tell the classes of `data_set` apart, and store its body as `name`, float16.

    Reproducible on one machine with the same versions: one thread, seeded. Raises DataError without torch and timm.
    """
    try:
        import torch
    except ImportError as error:
        raise DataError(
            "Pretraining needs torch and timm.", "Install the extra: pip install 'continual-suite[learners]'."
        ) from error
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed)
            network = build(ARCHITECTURE, len(data_set))
            _train(network, *_images(data_set, "train"), recipe, report)
        return _store(network, data_set, name, root, recipe)
    finally:
        torch.set_num_threads(threads)


def _images(data_set: DataSet, split: str) -> tuple[Tensor, Tensor]:
    """All images uint8 [N, H, W, 3] and labels int64 [N] of a split."""
    import torch

    parts = [np.array(data_set.images(split, index)) for index in range(len(data_set))]  # type: ignore[arg-type]
    labels = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    return torch.from_numpy(np.concatenate(parts)), torch.from_numpy(labels)


def _train(network: Any, images: Tensor, labels: Tensor, recipe: Recipe, report: Report) -> None:
    import torch
    from torch.nn import functional

    steps = max(1, recipe.passes // recipe.batch)
    optimizer = torch.optim.AdamW(network.parameters(), recipe.lr, weight_decay=recipe.weight_decay, fused=True)
    queue = torch.empty(0, dtype=torch.int64)
    network.train()
    for step in range(steps):
        if len(queue) < recipe.batch:
            queue = torch.cat([queue, torch.randperm(len(labels))])
        rows, queue = queue[: recipe.batch], queue[recipe.batch :]
        done = step / steps
        optimizer.param_groups[0]["lr"] = (
            recipe.lr * min(1, done / recipe.warm_up) * 0.5 * (1 + math.cos(math.pi * done))
        )
        plain = min(1.0, max(0.0, (recipe.raw_from - done) / (recipe.raw_from - recipe.plain_until)))
        inputs = _augmented(images[rows], plain, recipe)
        loss = functional.cross_entropy(network(inputs), labels[rows], label_smoothing=recipe.smoothing)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 50 == 0 or step + 1 == steps:
            report(step + 1, steps, float(loss.detach()))
    if not all(bool(p.isfinite().all()) for p in network.parameters()):
        raise DataError("The pretraining diverged.", "Choose a smaller learning rate.")


def _augmented(images: Tensor, plain: float, recipe: Recipe) -> Tensor:
    """Network input: a random crop of each image, and with probability `plain` its strokes only."""
    import torch
    from torch.nn import functional

    pixels = images.permute(0, 3, 1, 2).float() / 255
    count, size = len(pixels), ARCHITECTURE["input"]["size"]
    side = (recipe.least_crop + (1 - recipe.least_crop) * torch.rand(count)).sqrt()
    theta = torch.zeros(count, 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = side
    theta[:, :, 2] = (torch.rand(count, 2) * 2 - 1) * (1 - side[:, None])
    if recipe.flip:
        theta[:, 0, 0] *= torch.where(torch.rand(count) < 0.5, -1.0, 1.0)
    grid = functional.affine_grid(theta, [count, 3, size, size], align_corners=False)
    pixels = functional.grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)
    if plain > 0:
        chosen = torch.rand(count) < plain
        pixels = torch.where(chosen[:, None, None, None], strokes(pixels), pixels)
    return pixels * 2 - 1  # mean and deviation of the architecture's input are 0.5


def strokes(pixels: Tensor) -> Tensor:
    """Distance of each pixel [N, 3, S, S] from the colour of the border, scaled to at most 1: bright on black.

    The first part of the curriculum: with colours and polarity gone, shapes are learned soon; then they are recognised
    in raw images.
    """
    import torch

    border = torch.cat([pixels[:, :, 0], pixels[:, :, -1], pixels[:, :, :, 0], pixels[:, :, :, -1]], 2)
    colour = border.median(2).values[:, :, None, None]
    distance = (pixels - colour).abs().mean(1, keepdim=True)
    return (distance / (distance.amax((2, 3), keepdim=True) + 1e-6)).expand(-1, 3, -1, -1)


def accuracy(network: Any, images: Tensor, labels: Tensor) -> float:
    """Share of right predictions on images as they are (of the network's own size)."""
    import torch
    from torch.nn import functional

    network.eval()
    size, right = ARCHITECTURE["input"]["size"], 0
    with torch.no_grad():
        for rows in torch.split(torch.arange(len(labels)), 256):
            pixels = images[rows].permute(0, 3, 1, 2).float() / 255
            if pixels.shape[-1] != size:
                pixels = functional.interpolate(pixels, size=(size, size), mode="bilinear", antialias=True)
            right += int((network(pixels * 2 - 1).argmax(1) == labels[rows]).sum())
    return right / max(1, len(labels))


def _store(network: Any, data_set: DataSet, name: str, root: Path | None, recipe: Recipe) -> Weights:
    import timm
    import torch
    from safetensors.torch import save_file

    state = {k: v.half().contiguous() for k, v in network.state_dict().items() if not k.startswith("head.")}
    pretraining = Pretraining(
        data_set=data_set.name,
        data_sha256=data_set.sha256,
        classes=data_set.class_names,
        test_accuracy=accuracy(network, *_images(data_set, "test")),
    )
    metadata = {"backbone": json.dumps(ARCHITECTURE, sort_keys=True), "pretraining": pretraining.model_dump_json()}
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "weights.safetensors"
        save_file(state, file, metadata)
        sort_header(file)
        manifest = WeightsManifest(
            name=name,
            sha256=file_sha256(file),
            size_bytes=file.stat().st_size,
            parameters=sum(value.numel() for value in state.values()),
            licence=data_set.manifest.origin.licence,
            source=f"pretrained by `suite weights pretrain` on {data_set.name}",
            remark="A small network for tests, demonstrations and machines without downloads.",
            pretraining=pretraining,
            made_with={"torch": torch.__version__, "timm": timm.__version__, "recipe": canonical_json(asdict(recipe))},
        )
        return keep(file, manifest, root)


def sort_header(file: Path) -> None:
    """Rewrite the header of a safetensors file with sorted keys: the library writes metadata in a random order.

    A file is the header's length (8 bytes, little endian), the header as JSON padded with spaces to a multiple of 8,
    and the tensors, whose offsets count from the header's end.
    """
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = canonical_json(json.loads(content[8 : 8 + length])).encode()
    header += b" " * (-len(header) % 8)
    file.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])
