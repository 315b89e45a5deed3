"""Look: from a warped distance field to coloured pixels. Two styles, `ink` for letters and `outline` for symbols."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from suite.data.glyphs.streams import Float, Stream

Paint = Callable[[Float, Float, Stream], Float]


def ink(field: Float, pixel: Float, stream: Stream) -> Float:
    """Filled strokes on uneven paper, dark on light or now and then light on dark; float32 [count, R, R, 3] in 0..1."""
    thickness = stream.between("thickness", -0.6, 2.2)
    cover = _edge(field - thickness[:, None, None], pixel)
    flip = stream.units("flip") < np.float32(0.2)
    light, dark = stream.between("light", 0.6, 1.0), stream.between("dark", 0.0, 0.35)
    paper = _tinted(np.where(flip, dark, light), stream, "paper", 0.12)
    colour = _tinted(np.where(flip, light, dark), stream, "colour", 0.18)
    ground = paper[:, None, None, :] + _slope(stream, field.shape[1])[..., None]
    return np.asarray(ground + (colour[:, None, None, :] - ground) * cover[..., None], np.float32)


def outline(field: Float, pixel: Float, stream: Stream) -> Float:
    """Hollow strokes in a strong colour on stripes or checks of two pale ones; float32 [count, R, R, 3] in 0..1."""
    width = stream.between("width", 1.6, 3.0)
    ring = _edge(np.abs(field - np.float32(1)) - width[:, None, None], pixel)
    body = _edge(field - np.float32(1), pixel)
    ground = _texture(stream, field.shape[1])
    fill = stream.between("fill", 0.35, 0.95, 3)[:, None, None, :]
    line = _strong(stream)[:, None, None, :]
    filled = ground + (fill - ground) * (np.float32(0.6) * body)[..., None]
    return filled + (line - filled) * ring[..., None]


def grain(image: Float, stream: Stream) -> Float:
    """Sensor noise, a share of it common to the channels, in a strength of each image's own."""
    strength = stream.between("grain", 0.02, 0.16)[:, None, None, None]
    size = image.shape[1]
    return image + stream.triangular("noise", size, size, 3) * strength


def _edge(field: Float, pixel: Float) -> Float:
    """Share of a pixel that lies inside, [count, R, R]."""
    return np.asarray(np.clip(np.float32(0.5) - field / pixel[:, None, None], 0, 1), np.float32)


def _tinted(level: Float, stream: Stream, what: str, spread: float) -> Float:
    return level.astype(np.float32)[:, None] + stream.between(f"tint {what}", -spread, spread, 3)


def _ramp(stream: Stream, what: str, size: int) -> Float:
    """A linear function of the place with a random direction, [count, R, R], about -1..1."""
    line = ((np.arange(size, dtype=np.float32) + np.float32(0.5)) * np.float32(2 / size)) - 1
    direction = stream.between(what, -1, 1, 2)
    return direction[:, 0, None, None] * line[None, None, :] + direction[:, 1, None, None] * line[None, :, None]


def _slope(stream: Stream, size: int) -> Float:
    """Uneven light."""
    return _ramp(stream, "slope", size) * stream.between("unevenness", 0, 0.18)[:, None, None]


def _texture(stream: Stream, size: int) -> Float:
    """Stripes, or checks (two sets of stripes), of two middling colours, [count, R, R, 3]."""
    period = stream.between("period", 2.0, 5.0)[:, None, None]
    first, second = (_stripes(_ramp(stream, f"stripes {i}", size) * period) for i in (1, 2))
    checked = stream.units("checked") < np.float32(0.5)
    mix = np.where(checked[:, None, None], np.abs(first - second), first)[..., None]
    one, two = (stream.between(f"ground {i}", 0.45, 0.95, 3)[:, None, None, :] for i in (1, 2))
    return one + (two - one) * mix


def _stripes(phase: Float) -> Float:
    """A triangle wave of period 1 in 0..1."""
    return np.abs((phase - np.floor(phase)) * 2 - 1)


def _strong(stream: Stream) -> Float:
    """A dark, saturated colour: one channel bright, two near black, [count, 3]."""
    bright = (stream.units("bright") * 3).astype(np.int32)
    return np.eye(3, dtype=np.float32)[bright] * np.float32(0.7) + stream.between("strong", 0.0, 0.2, 3)
