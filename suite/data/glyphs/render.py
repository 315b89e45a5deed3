"""All images of one class, in one vectorised pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from suite.data.glyphs import paint
from suite.data.glyphs.streams import Stream
from suite.data.glyphs.warp import distance_field, warped

VERSION = 1  # changes whenever a pixel does
STYLES: dict[str, paint.Paint] = {"ink": paint.ink, "outline": paint.outline}


def render(
    name: str, master: NDArray[np.uint8], count: int, resolution: int, style: str, seed: int
) -> NDArray[np.uint8]:
    """Images 0..count-1 of class `name`, uint8 [count, resolution, resolution, 3].

    `master` is uint8 [96, 96] of 0 and 1. Image i is the same whatever the count.
    """
    stream = Stream(count, "glyphs", VERSION, seed, style, name)
    field, pixel = warped(distance_field(master), stream, resolution)
    image = paint.grain(STYLES[style](field, pixel, stream), stream)
    pixels: NDArray[np.uint8] = np.clip(image * np.float32(255) + np.float32(0.5), 0, 255).astype(np.uint8)
    return pixels
