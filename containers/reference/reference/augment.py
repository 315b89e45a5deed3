"""Augmentation and normalisation of whole batches, on the device the images lie on.

A transform keeps images as uint8 [N, H, W, C] (padded once, where it crops with padding) and turns rows of them into
normalised float32 batches [B, C, H, W] whose memory is channels-last, since that is how they lie.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

CIFAR_STATISTICS = ((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761))
IMAGENET_STATISTICS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
BRIGHTNESS = 63 / 255
"""Brightness jitter of the CIFAR recipe: each image is multiplied by a factor within 1 +- this."""


class Transform(Protocol):
    """From stored uint8 images to network input."""

    def store(self, images: np.ndarray, device: torch.device) -> Tensor:
        """Images uint8 [N, H, W, C] as this transform wants to keep them."""

    def train(self, stored: Tensor, rows: Tensor) -> Tensor:
        """Augmented float32 [B, C, h, w] of the given rows (int64 [B])."""

    def test(self, images: Tensor) -> Tensor:
        """Float32 [B, C, h, w] of unpadded uint8 [B, H, W, C], without augmentation."""


class Normalizer:
    """(pixel / 255 - mean) / std, per channel; images with other than three channels use the mean of the three."""

    def __init__(self, statistics: tuple[tuple[float, ...], tuple[float, ...]], channels: int) -> None:
        mean, std = (np.asarray(s, np.float64) for s in statistics)
        if channels != len(mean):
            mean, std = np.full(channels, mean.mean()), np.full(channels, std.mean())
        self._scale = torch.tensor(1 / (255 * std), dtype=torch.float32).view(1, -1, 1, 1)
        self._shift = torch.tensor(-mean / std, dtype=torch.float32).view(1, -1, 1, 1)

    def __call__(self, pixels: Tensor) -> Tensor:
        """Normalise float pixels [B, C, H, W] in 0 .. 255, in place."""
        if self._scale.device != pixels.device:
            self._scale, self._shift = self._scale.to(pixels.device), self._shift.to(pixels.device)
        return pixels.mul_(self._scale).add_(self._shift)


class CropFlipJitter:
    """Random crop after zero padding, horizontal flip, brightness jitter: the CIFAR recipe of the papers' code.

    The crop reads from images padded once; crop and flip together are one gather. Unlike torchvision on 8-bit images,
    jittered pixels are not rounded to integers again.
    """

    def __init__(
        self, normalizer: Normalizer, padding: int, *, flip: bool = True, brightness: float = BRIGHTNESS
    ) -> None:
        self._normalizer = normalizer
        self._padding = padding
        self._flip = flip
        self._brightness = brightness

    def store(self, images: np.ndarray, device: torch.device) -> Tensor:
        p = self._padding
        return functional.pad(torch.from_numpy(np.ascontiguousarray(images)).to(device), (0, 0, p, p, p, p))

    def train(self, stored: Tensor, rows: Tensor) -> Tensor:
        batch, device = len(rows), stored.device
        height, width = (side - 2 * self._padding for side in stored.shape[1:3])
        shift = torch.randint(0, 2 * self._padding + 1, (2, batch, 1), device=device)
        columns = torch.arange(width, device=device).expand(batch, -1)
        if self._flip:
            columns = torch.where(torch.rand(batch, 1, device=device) < 0.5, columns.flip(1), columns)
        y = torch.arange(height, device=device) + shift[0]
        pixels = stored[rows.view(-1, 1, 1), y.unsqueeze(2), (columns + shift[1]).unsqueeze(1)]
        pixels = pixels.permute(0, 3, 1, 2).float()
        if self._brightness:
            factor = 1 + self._brightness * (2 * torch.rand(batch, 1, 1, 1, device=device) - 1)
            pixels = pixels.mul_(factor).clamp_(max=255)
        return self._normalizer(pixels)

    def test(self, images: Tensor) -> Tensor:
        return self._normalizer(images.permute(0, 3, 1, 2).float())


class ResizedCropFlip:
    """Random resized crop (area 8-100 %, aspect 3/4-4/3) and flip for training, centre crop for testing.

    From images of side s to s * 7 / 8 (256 -> 224). The crops are sampled bilinearly, without antialiasing.
    """

    def __init__(self, normalizer: Normalizer, side: int, *, flip: bool = True, brightness: float = BRIGHTNESS) -> None:
        self._normalizer = normalizer
        self._side = side * 7 // 8
        self._flip = flip
        self._brightness = brightness

    def store(self, images: np.ndarray, device: torch.device) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(images)).to(device)

    def train(self, stored: Tensor, rows: Tensor) -> Tensor:
        batch, device = len(rows), stored.device
        area = 0.08 + 0.92 * torch.rand(batch, device=device)
        ratio = torch.exp((2 * torch.rand(batch, device=device) - 1) * float(np.log(4 / 3)))
        size = torch.stack([(area * ratio).sqrt(), (area / ratio).sqrt()], 1).clamp_(max=1.0)  # width, height
        centre = (2 * torch.rand(batch, 2, device=device) - 1) * (1 - size)
        if self._flip:
            size[:, 0] *= torch.where(torch.rand(batch, device=device) < 0.5, -1.0, 1.0)
        theta = torch.cat([torch.diag_embed(size), centre.unsqueeze(2)], 2)
        pixels = stored[rows].permute(0, 3, 1, 2).float()
        grid = functional.affine_grid(theta, [batch, pixels.shape[1], self._side, self._side], align_corners=False)
        pixels = functional.grid_sample(pixels, grid, padding_mode="border", align_corners=False)
        if self._brightness:
            factor = 1 + self._brightness * (2 * torch.rand(batch, 1, 1, 1, device=device) - 1)
            pixels = pixels.mul_(factor).clamp_(max=255)
        return self._normalizer(pixels.contiguous(memory_format=torch.channels_last))

    def test(self, images: Tensor) -> Tensor:
        top, left = ((side - self._side) // 2 for side in images.shape[1:3])
        centre = images[:, top : top + self._side, left : left + self._side]
        return self._normalizer(centre.permute(0, 3, 1, 2).float())


def scratch_transform(height: int, channels: int, augmentation: str = "crop_flip_jitter") -> Transform:
    """The transform of the from-scratch learners: by image side, and by the option `augmentation`.

    `crop_flip_jitter` (the papers' recipe for natural images), `crop_jitter` (characters, where a mirror image is
    another class) or `none`.
    """
    flip, brightness = augmentation == "crop_flip_jitter", 0.0 if augmentation == "none" else BRIGHTNESS
    if augmentation not in ("crop_flip_jitter", "crop_jitter", "none"):
        raise ValueError(f"unknown augmentation {augmentation!r}")
    if height >= 128:
        return ResizedCropFlip(Normalizer(IMAGENET_STATISTICS, channels), height, flip=flip, brightness=brightness)
    statistics = CIFAR_STATISTICS if height <= 32 else IMAGENET_STATISTICS
    padding = 0 if augmentation == "none" else height // 8
    return CropFlipJitter(Normalizer(statistics, channels), padding, flip=flip, brightness=brightness)
