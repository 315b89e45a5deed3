"""Glyphs: thousands of classes drawn from shipped masters, for tests, demonstrations and cheap tracks.

They are not natural images, and no result on them is presented as one on natural images. The pictures of a class depend
on its name, the style, the seed and this version only: not on the set it is prepared for, nor on the machine.
"""

from suite.data.glyphs.masters import load_index, load_masters
from suite.data.glyphs.render import STYLES, VERSION, render

__all__ = ["STYLES", "VERSION", "load_index", "load_masters", "render"]
