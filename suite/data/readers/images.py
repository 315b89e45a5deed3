"""From the bytes of one image file to square uint8 pixels."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from suite.errors import DataError, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "PPM", "GIF")
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".ppm", ".gif")
MAX_PIXELS = 80_000_000  # the largest of ImageNet has 61 million


def decode(content: bytes, resolution: int, what: str) -> NDArray[np.uint8]:
    """Decode, scale the shorter side to `resolution`, crop the centre: uint8 [resolution, resolution, 3].

    Shrinks with Lanczos, enlarges with bicubic interpolation, leaves pixels alone where the size fits already.
    Raises DataError, naming `what`, when it is no image or a vast one.
    """
    image = _rgb(content, what)
    scale = resolution / min(image.size)
    if scale != 1:
        from PIL.Image import Resampling

        size = (max(resolution, round(image.width * scale)), max(resolution, round(image.height * scale)))
        image = image.resize(size, Resampling.LANCZOS if scale < 1 else Resampling.BICUBIC)
    left, top = (image.width - resolution) // 2, (image.height - resolution) // 2
    return np.asarray(image.crop((left, top, left + resolution, top + resolution)), np.uint8)


def short_side(content: bytes, what: str) -> int:
    """Pixels of the shorter side of an image."""
    return int(min(_rgb(content, what).size))


def _rgb(content: bytes, what: str) -> PillowImage:
    try:
        from PIL import Image
    except ImportError as error:
        raise UsageError("Reading images needs Pillow.", "pip install 'continual-suite[data]'") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image: Image.Image = Image.open(io.BytesIO(content), formats=FORMATS)
            if image.width * image.height > MAX_PIXELS:
                raise DataError(f"{what} has {image.width}x{image.height} pixels.", "Leave it out or shrink it.")
            if "transparency" in image.info:
                image = image.convert("RGBA")
            return image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"{what} is no readable image ({error}).", f"Use one of {', '.join(FORMATS)}.") from error
