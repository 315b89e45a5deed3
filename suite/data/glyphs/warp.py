"""Shape: distance field of a master, sampled along an affine and an elastic distortion of the pixel grid.

Only operations that IEEE 754 rounds exactly (+ - * / sqrt, comparisons) in a fixed order: no sin, exp, BLAS or
reduction over floats, whose last bit differs between processors.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from suite.data.glyphs.masters import CANVAS
from suite.data.glyphs.streams import Float, Stream

_KNOTS = 6  # of a side of the elastic grid
_HALF = np.float32(CANVAS / 2)


def distance_field(master: NDArray[np.uint8]) -> Float:
    """Signed distance to the edge of the ink in master pixels, float32 [96, 96]; negative inside."""
    outside, inside = (_nearest(master == ink) for ink in (1, 0))
    return np.asarray(np.where(master == 1, np.float32(0.5) - inside, outside - np.float32(0.5)), np.float32)


def _nearest(targets: NDArray[np.bool_]) -> Float:
    """Distance of each pixel to the nearest true one: exact, in two passes over integers."""
    line = np.arange(CANVAS, dtype=np.int32)
    gap = np.abs(line[:, None] - line[None])  # [x, x']
    far = np.int32(4 * CANVAS)
    along = np.where(targets[:, None, :], gap[None], far).min(axis=2)  # [y, x]
    squares = ((gap**2)[:, :, None] + (along**2)[None]).min(axis=1)  # [y, y', x] -> [y, x]
    return np.asarray(np.sqrt(squares.astype(np.float32)))


@functools.cache
def _spline(resolution: int) -> Float:
    """Cubic B-spline weights that spread `_KNOTS` knots over a line of pixels, float32 [resolution, _KNOTS]."""
    weights = np.zeros((resolution, _KNOTS), np.float64)
    for pixel in range(resolution):
        place = (pixel + 0.5) / resolution * (_KNOTS - 3)
        first = min(int(place), _KNOTS - 4)
        t = place - first
        basis = [(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3]
        weights[pixel, first : first + 4] = [b / 6 for b in basis]
    return weights.astype(np.float32)


def _elastic(stream: Stream, axis: str, amplitude: Float, resolution: int) -> Float:
    """A smooth displacement in half canvases, float32 [count, resolution, resolution]."""
    knots = stream.between(f"elastic {axis}", -1, 1, _KNOTS, _KNOTS) * amplitude[:, None, None]
    weights = _spline(resolution)
    rows = sum(weights[None, :, k, None] * knots[:, None, k, :] for k in range(_KNOTS))
    return np.asarray(sum(np.asarray(rows)[:, :, k, None] * weights[None, None, :, k] for k in range(_KNOTS)))


def warped(field: Float, stream: Stream, resolution: int) -> tuple[Float, Float]:
    """The field seen through each image's distortion, float32 [count, R, R], and master pixels per pixel [count]."""
    half_turn = stream.between("turn", -0.13, 0.13)  # tan of half the angle: up to 15 degrees either way
    norm = 1 + half_turn * half_turn
    cosine, sine = (1 - half_turn * half_turn) / norm, 2 * half_turn / norm
    scale, aspect = stream.between("scale", 0.78, 1.08), stream.between("aspect", 0.88, 1.14)
    shear = stream.between("shear", -0.2, 0.2)
    shift = stream.between("shift", -0.12, 0.12, 2)
    amplitude = stream.between("bend", 0.05, 0.28)
    line = ((np.arange(resolution, dtype=np.float32) + np.float32(0.5)) * np.float32(2 / resolution)) - 1
    across, down = line[None, None, :], line[None, :, None]
    x = across - shift[:, 0, None, None] + _elastic(stream, "x", amplitude, resolution)
    y = down - shift[:, 1, None, None] + _elastic(stream, "y", amplitude, resolution)
    x, y = _turned(x, y, cosine, sine)
    x = (x + shear[:, None, None] * y) / (scale * aspect)[:, None, None]
    y = y / (scale / aspect)[:, None, None]
    return _sample(field, x, y), np.float32(CANVAS / resolution) / scale


def _turned(x: Float, y: Float, cosine: Float, sine: Float) -> tuple[Float, Float]:
    c, s = cosine[:, None, None], sine[:, None, None]
    return c * x - s * y, s * x + c * y


def _sample(field: Float, x: Float, y: Float) -> Float:
    """Bilinear values of `field` at x, y in half canvases from the centre; the border goes on outside."""
    limit = np.float32(CANVAS - 1.001)
    x = np.clip((x + 1) * _HALF - np.float32(0.5), 0, limit)
    y = np.clip((y + 1) * _HALF - np.float32(0.5), 0, limit)
    left, top = x.astype(np.int32), y.astype(np.int32)
    x, y = x - left, y - top
    place = top * CANVAS + left
    flat = field.ravel()
    upper = flat.take(place) * (1 - x) + flat.take(place + 1) * x
    lower = flat.take(place + CANVAS) * (1 - x) + flat.take(place + CANVAS + 1) * x
    return np.asarray(upper * (1 - y) + lower * y, np.float32)
