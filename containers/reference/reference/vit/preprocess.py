"""From uint8 images of any size to a backbone's input, on the device and in batches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

_CENTRE = 0.875  # the usual share of the image that evaluation keeps: 224 of 256 pixels

AUGMENTATIONS: dict[str, tuple[float, bool] | None] = {
    "resized_crop_flip": (0.05, True),
    "crop": (0.6, False),
    "none": None,
}
"""Least area of the random resized crop, and whether to mirror: for natural images, for characters, not at all."""


@dataclass(frozen=True)
class Preprocess:
    """Resize to `size` pixels and normalise; also the `Transform` of the training engine.

    `mean` and `std` are per channel, of pixels in [0, 1]. At test an image larger than the input is cropped first.
    """

    size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    augmentation: str = "none"

    def __post_init__(self) -> None:
        """Refuse an augmentation that is not one of AUGMENTATIONS."""
        if self.augmentation not in AUGMENTATIONS:
            raise ValueError(f"unknown augmentation {self.augmentation!r}; choose one of {', '.join(AUGMENTATIONS)}")

    def store(self, images: np.ndarray, device: torch.device) -> Tensor:
        """Images uint8 [N, H, W, C] as they are, on the device."""
        return torch.from_numpy(np.array(images)).to(device)

    def train(self, stored: Tensor, rows: Tensor) -> Tensor:
        """Augmented float32 [B, 3, size, size] of the given rows: one crop of each, resampled bilinearly.

        Aspect ratio between 3/4 and 4/3, as in torchvision. Without augmentation, the test transform.
        """
        chosen = AUGMENTATIONS[self.augmentation]
        if chosen is None:
            return self.test(stored[rows])
        pixels = _to_float(stored[rows])
        theta = random_crops(len(pixels), *chosen).to(pixels.device)
        grid = functional.affine_grid(theta, [len(pixels), 3, self.size, self.size], align_corners=False)
        return self._normalise(functional.grid_sample(pixels, grid, padding_mode="reflection", align_corners=False))

    def test(self, images: Tensor) -> Tensor:
        """The test transform: uint8 [B, H, W, C] -> float32 [B, 3, size, size]."""
        pixels = _to_float(images)
        if pixels.shape[-1] > self.size:
            pixels = _centre_crop(pixels, round(pixels.shape[-1] * _CENTRE))
        if pixels.shape[-2:] != (self.size, self.size):
            pixels = functional.interpolate(pixels, size=(self.size, self.size), mode="bilinear", antialias=True)
        return self._normalise(pixels)

    def _normalise(self, pixels: Tensor) -> Tensor:
        mean = torch.tensor(self.mean, device=pixels.device).view(1, 3, 1, 1)
        std = torch.tensor(self.std, device=pixels.device).view(1, 3, 1, 1)
        return (pixels - mean) / std


def random_crops(count: int, least: float, flip: bool) -> Tensor:
    """Affine maps [count, 2, 3] from output to input coordinates: a crop of at least `least` of the area each."""
    area = least + (1 - least) * torch.rand(count)
    ratio = torch.exp((torch.rand(count) * 2 - 1) * math.log(4 / 3))
    width, height = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    mirror = torch.where(torch.rand(count) < 0.5, -1.0, 1.0) if flip else torch.ones(count)
    theta = torch.zeros(count, 2, 3)
    theta[:, 0, 0] = width * mirror
    theta[:, 1, 1] = height
    theta[:, 0, 2] = (torch.rand(count) * 2 - 1) * (1 - width)
    theta[:, 1, 2] = (torch.rand(count) * 2 - 1) * (1 - height)
    return theta


def _to_float(images: Tensor) -> Tensor:
    pixels = images.permute(0, 3, 1, 2).float().div_(255)
    return pixels.expand(-1, 3, -1, -1) if pixels.shape[1] == 1 else pixels


def _centre_crop(pixels: Tensor, size: int) -> Tensor:
    top, left = (pixels.shape[-2] - size) // 2, (pixels.shape[-1] - size) // 2
    return pixels[..., top : top + size, left : left + size]
