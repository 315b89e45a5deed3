"""The named sets of glyphs, and how one is written as a data set."""

from __future__ import annotations

from suite.data.dataset import Progress
from suite.data.glyphs.masters import load_index, load_masters
from suite.data.glyphs.render import VERSION, render
from suite.data.manifest import Origin
from suite.data.writer import ClassPlan, Plan, Writer
from suite.seeds import content_hash

PUBLIC_SEED = 0
TRAIN, TEST = 50, 20  # images a class
SOURCE = "rendered by suite.data.glyphs from masters of the Noto fonts (https://fonts.google.com/noto)"


def glyph_sets() -> dict[str, tuple[str, ...]]:
    """Name -> classes: the whole pool, letters, symbols, the part kept for pretraining, and one set per script."""
    index = load_index()
    scripts = {f"glyphs/{script}": names for script, names in index.scripts.items()}
    return {**index.sets, **scripts}


def seed_commitment(seed: int) -> str:
    """What is published of a secret rendering seed beforehand. Choose seeds of 128 random bits or more."""
    return content_hash(["glyph seed", seed])


def glyph_origin(seed: int | None = None) -> Origin:
    """Source, licence and, of a secret seed, the commitment."""
    return Origin(
        source=SOURCE,
        licence=load_index().licence,
        split="seeded",
        notes=("rendered glyphs, no natural images",),
        seed_commitment=None if seed is None else seed_commitment(seed),
    )


def plan_glyphs(name: str, resolution: int, seed: int | None = None) -> Plan:
    """What `fill_glyphs` will write; a `seed` that is given is secret and enters by its commitment only."""
    classes = [ClassPlan(c, TRAIN, TEST) for c in glyph_sets()[name]]
    return Plan(name, VERSION, resolution, classes, glyph_origin(seed))


def fill_glyphs(writer: Writer, plan: Plan, seed: int | None, progress: Progress) -> None:
    """Render class by class."""
    kinds = load_index().kinds
    names = [entry.name for entry in plan.classes]
    for index, (name, master) in enumerate(zip(names, load_masters(names), strict=True)):
        style = "outline" if kinds[name.partition("/")[0]] == "symbol" else "ink"
        images = render(name, master, TRAIN + TEST, plan.resolution, style, PUBLIC_SEED if seed is None else seed)
        writer.put("train", index, 0, images[:TRAIN])
        writer.put("test", index, 0, images[TRAIN:])
        progress(index + 1, len(names))
