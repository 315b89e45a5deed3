"""Memory footprint as the CLDyB paper counts it."""

from __future__ import annotations

BYTES_PER_PARAMETER = 4
BYTES_PER_IMAGE = 224 * 224 * 3


def memory_b4(parameters_beyond_encoder: int, stored_images: int) -> int:
    """Bytes that a learner keeps in addition to its encoder (CLDyB appendix B.4).

    Every stored number (model replicas, PET modules, statistics) counts as a 32-bit float, every stored image as
    uncompressed 8-bit RGB at 224 x 224, whatever their real size. Memory efficiency there is the negative of this.
    """
    if parameters_beyond_encoder < 0 or stored_images < 0:
        raise ValueError("numbers of parameters and of stored images cannot be negative")
    return BYTES_PER_PARAMETER * parameters_beyond_encoder + BYTES_PER_IMAGE * stored_images
