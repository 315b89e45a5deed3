"""Residual networks: the CIFAR ResNet-32 for small images, ResNet-18 for larger ones (He et al., 2016)."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional


def _conv(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class ShortcutA(nn.Module):
    """Option A of the paper: take every `stride`-th pixel and fill the new channels with zeros; no parameters."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self._new = outputs - inputs
        self._stride = stride

    def forward(self, x: Tensor) -> Tensor:
        return functional.pad(x[:, :, :: self._stride, :: self._stride], (0, 0, 0, 0, 0, self._new))


class ShortcutB(nn.Sequential):
    """Option B: a 1x1 convolution with batch normalisation."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(_conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions around a shortcut; `last_relu=False` leaves the sum as it is (LUCIR, PODNet, AFC)."""

    def __init__(
        self, inputs: int, outputs: int, stride: int, shortcut: type[ShortcutA | ShortcutB], *, last_relu: bool = True
    ) -> None:
        super().__init__()
        self.conv1, self.norm1 = _conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = _conv(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs)
        changes = stride != 1 or inputs != outputs
        self.shortcut: nn.Module = shortcut(inputs, outputs, stride) if changes else nn.Identity()
        self._last_relu = last_relu

    def forward(self, x: Tensor) -> Tensor:
        hidden = functional.relu(self.norm1(self.conv1(x)), inplace=True)
        out: Tensor = self.norm2(self.conv2(hidden)).add_(self.shortcut(x))
        return out.relu_() if self._last_relu else out


class ResNet(nn.Module):
    """`general` (stem and all stages but the last), `special` (the last stage), global average pooling.

    The two parts have names because MEMO shares the first and repeats the second. features: float32 [B, dimension].
    """

    def __init__(self, stem: nn.Module, general: list[nn.Sequential], special: nn.Sequential, dimension: int) -> None:
        super().__init__()
        self.general = nn.Sequential(stem, *general)
        self.special = special
        self.dimension = dimension
        _initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        return pool(self.special(self.general(x)))

    @property
    def map_channels(self) -> list[int]:
        """Channels of each of `maps`."""
        stages = [*list(self.general)[1:], self.special, self.special]
        return [cast("BasicBlock", cast("nn.Sequential", stage)[-1]).norm2.num_features for stage in stages]

    def maps(self, x: Tensor) -> list[Tensor]:
        """Outputs of each stage [B, C_l, H_l, W_l], the last stage's without its last block, then the last map.

        The maps that PODNet and AFC distil: four for ResNet-32, five for ResNet-18.
        """
        x = self.general[0](x)
        found = []
        for stage in list(self.general)[1:]:
            x = stage(x)
            found.append(x)
        x = self.special[:-1](x)
        return [*found, x, self.special[-1](x)]


def pool(last_map: Tensor) -> Tensor:
    """Global average pooling of [B, C, H, W] to [B, C]."""
    return last_map.mean((2, 3))


def _initialise(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):  # Kaiming, fan out
            fan = layer.kernel_size[0] * layer.kernel_size[1] * layer.out_channels
            nn.init.normal_(layer.weight, 0, math.sqrt(2 / fan))


def _stage(
    inputs: int,
    outputs: int,
    blocks: int,
    stride: int,
    shortcut: type[ShortcutA | ShortcutB],
    *,
    last_relu: bool = True,
) -> nn.Sequential:
    layers = [
        BasicBlock(
            inputs if i == 0 else outputs,
            outputs,
            stride if i == 0 else 1,
            shortcut,
            last_relu=last_relu or i < blocks - 1,
        )
        for i in range(blocks)
    ]
    return nn.Sequential(*layers)


def resnet32(channels: int = 3, *, last_relu: bool = True) -> ResNet:
    """The CIFAR ResNet with 3 stages of 5 blocks, widths 16/32/64, shortcut A: 463,504 parameters, 64 features."""
    stem = nn.Sequential(_conv(channels, 16, 3, 1), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
    general = [_stage(16, 16, 5, 1, ShortcutA), _stage(16, 32, 5, 2, ShortcutA)]
    return ResNet(stem, general, _stage(32, 64, 5, 2, ShortcutA, last_relu=last_relu), 64)


def resnet18(channels: int = 3, *, large: bool = True, last_relu: bool = True) -> ResNet:
    """ResNet-18, 512 features. `large`: the ImageNet stem (7x7 stride 2, max-pooling), else one 3x3 convolution."""
    if large:
        layers = [_conv(channels, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    else:
        layers = [_conv(channels, 64, 3, 1), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    general = [_stage(64, 64, 2, 1, ShortcutB), _stage(64, 128, 2, 2, ShortcutB), _stage(128, 256, 2, 2, ShortcutB)]
    return ResNet(nn.Sequential(*layers), general, _stage(256, 512, 2, 2, ShortcutB, last_relu=last_relu), 512)


def backbone_for(height: int, channels: int, *, last_relu: bool = True) -> ResNet:
    """The papers' from-scratch backbone: ResNet-32 up to 32 px, ResNet-18 above (small stem below 128 px)."""
    if height <= 32:
        net = resnet32(channels, last_relu=last_relu)
    else:
        net = resnet18(channels, large=height >= 128, last_relu=last_relu)
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]
