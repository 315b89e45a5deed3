"""Makes `suite/data/glyphs/masters.npz` and `index.json` from the Noto fonts of Debian 12; its output is shipped.

    apt-get install fonts-noto-core fonts-noto-extra fonts-noto-cjk
    python tools/glyphs_make.py [--sheet PNG]

A master is a 1-bit picture of 96x96 pixels: the glyph's ink, scaled to fit 80x80, centred. Two glyphs whose masters are
nearer than THRESHOLD (`suite.data.glyphs.masters.distances`) look the same once distorted: the later one is dropped and
recorded in the index. The order is that of SCRIPTS, then of code points.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import unicodedata
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

from suite.data.glyphs.masters import CANVAS, THRESHOLD, blurred, distances
from suite.seeds import derive_seed, shuffled

OUT = Path(__file__).parents[1] / "suite" / "data" / "glyphs"
FONTS = Path("/usr/share/fonts")
NOTO = FONTS / "truetype" / "noto"
CJK = FONTS / "opentype" / "noto" / "NotoSansCJK-Regular.ttc"
INK = 80  # the longer side of the ink, in pixels of the 96x96 master
DRAW = 320  # font size at which a glyph is drawn before it is reduced
LIMIT = 120  # classes a script at most, where nothing else is said
LETTERS = 200  # classes of letters-1, and of letters-2
LETTER_LIMIT = 30  # of one script in either
SYMBOLS = 160

Range = tuple[int, int]


def span(*ranges: Range) -> list[str]:
    """The characters of inclusive code point ranges."""
    return [chr(c) for first, last in ranges for c in range(first, last + 1)]


def ideographs() -> list[str]:
    """Frequent ideographs: on the first level of GB 2312 and of JIS X 0208, and in Big5's frequent plane."""

    def level(codec: str, leads: Iterable[int], trails: Iterable[int]) -> set[str]:
        pairs = [bytes([lead, trail]) for lead in leads for trail in trails]
        return {pair.decode(codec, "ignore") for pair in pairs}

    simplified = level("gb2312", range(0xB0, 0xD8), range(0xA1, 0xFF))
    japanese = level("euc_jp", range(0xB0, 0xD0), range(0xA1, 0xFF))
    traditional = level("big5", range(0xA4, 0xC7), [*range(0x40, 0x7F), *range(0xA1, 0xFF)])
    return draw("ideographs", sorted(c for c in simplified & japanese & traditional if len(c) == 1), 300)


def hangul() -> list[str]:
    """Syllables of KS X 1001."""
    pairs = [bytes([lead, trail]) for lead in range(0xB0, 0xC9) for trail in range(0xA1, 0xFF)]
    return draw("hangul", sorted({pair.decode("euc_kr", "ignore") for pair in pairs} - {""}), 150)


def draw(what: str, items: list[str], count: int) -> list[str]:
    """A fixed choice of `count` items, in their own order."""
    return sorted(shuffled(items, derive_seed("glyphs", what))[:count])


LATIN_EXTRA = (0xC6, 0xD8, 0xDE, 0xDF, 0xF0, 0x18F, 0x194, 0x186, 0x190, 0x1B7, 0x14A)
CYRILLIC_EXTRA = (0x462, 0x463, 0x46A, 0x46B, 0x472, 0x473, 0x474, 0x475)
# name: (font, characters); the alphabets and abugidas that `letters` is made of come first
ALPHABETS: dict[str, tuple[str, list[str]]] = {
    "latin": ("NotoSans", [*span((0x41, 0x5A), (0x61, 0x7A)), *map(chr, LATIN_EXTRA)]),
    "greek": ("NotoSans", span((0x391, 0x3A9), (0x3B1, 0x3C9))),
    "cyrillic": ("NotoSans", [*span((0x410, 0x44F), (0x402, 0x40F), (0x452, 0x45F)), *map(chr, CYRILLIC_EXTRA)]),
    "armenian": ("NotoSansArmenian", span((0x531, 0x556), (0x561, 0x586))),
    "georgian": ("NotoSansGeorgian", span((0x10D0, 0x10F6), (0x10A0, 0x10C5))),
    "hebrew": ("NotoSansHebrew", span((0x5D0, 0x5EA))),
    "arabic": ("NotoSansArabic", span((0x621, 0x63A), (0x641, 0x64A), (0x671, 0x6D3))),
    "devanagari": ("NotoSansDevanagari", span((0x904, 0x939), (0x960, 0x961))),
    "bengali": ("NotoSansBengali", span((0x985, 0x9B9), (0x9DC, 0x9E1))),
    "gurmukhi": ("NotoSansGurmukhi", span((0xA05, 0xA39), (0xA59, 0xA5E))),
    "gujarati": ("NotoSansGujarati", span((0xA85, 0xAB9))),
    "oriya": ("NotoSansOriya", span((0xB05, 0xB39))),
    "tamil": ("NotoSansTamil", span((0xB83, 0xBB9))),
    "telugu": ("NotoSansTelugu", span((0xC05, 0xC39))),
    "kannada": ("NotoSansKannada", span((0xC85, 0xCB9))),
    "malayalam": ("NotoSansMalayalam", span((0xD05, 0xD39))),
    "sinhala": ("NotoSansSinhala", span((0xD85, 0xDC6))),
    "thai": ("NotoSansThai", span((0xE01, 0xE30))),
    "lao": ("NotoSansLao", span((0xE81, 0xEB0))),
    "tibetan": ("NotoSerifTibetan", span((0xF40, 0xF6C))),
    "myanmar": ("NotoSansMyanmar", span((0x1000, 0x102A))),
    "khmer": ("NotoSansKhmer", span((0x1780, 0x17B3))),
    "coptic": ("NotoSansCoptic", span((0x2C80, 0x2CB1))),
    "gothic": ("NotoSansGothic", span((0x10330, 0x1034A))),
    "glagolitic": ("NotoSansGlagolitic", span((0x2C00, 0x2C2E))),
    "runic": ("NotoSansRunic", span((0x16A0, 0x16EA))),
    "tifinagh": ("NotoSansTifinagh", span((0x2D30, 0x2D67))),
    "nko": ("NotoSansNKo", span((0x7CA, 0x7EA))),
    "deseret": ("NotoSansDeseret", span((0x10400, 0x10427))),
    "shavian": ("NotoSansShavian", span((0x10450, 0x1047F))),
    "osmanya": ("NotoSansOsmanya", span((0x10480, 0x1049D))),
    "old-italic": ("NotoSansOldItalic", span((0x10300, 0x1031F))),
    "phoenician": ("NotoSansPhoenician", span((0x10900, 0x10915))),
    "syriac": ("NotoSansSyriac", span((0x710, 0x72F))),
    "thaana": ("NotoSansThaana", span((0x780, 0x7A5))),
    "mongolian": ("NotoSansMongolian", span((0x1820, 0x1842))),
    "ol-chiki": ("NotoSansOlChiki", span((0x1C5A, 0x1C77))),
    "lisu": ("NotoSansLisu", span((0xA4D0, 0xA4F7))),
}  # fmt: skip
OTHERS: dict[str, tuple[str, list[str]]] = {
    "ethiopic": ("NotoSansEthiopic", span((0x1200, 0x135A))),
    "cherokee": ("NotoSansCherokee", span((0x13A0, 0x13EF))),
    "canadian": ("NotoSansCanadianAboriginal", span((0x1401, 0x166C))),
    "hiragana": ("CJK", span((0x3041, 0x3096))),
    "katakana": ("CJK", span((0x30A1, 0x30FA))),
    "bopomofo": ("CJK", span((0x3105, 0x312D))),
    "hangul": ("CJK", hangul()),
    "ideographs": ("CJK", ideographs()),
    "javanese": ("NotoSansJavanese", span((0xA984, 0xA9B2))),
    "balinese": ("NotoSansBalinese", span((0x1B05, 0x1B33))),
    "buginese": ("NotoSansBuginese", span((0x1A00, 0x1A16))),
    "cham": ("NotoSansCham", span((0xAA00, 0xAA28))),
    "tai-tham": ("NotoSansTaiTham", span((0x1A20, 0x1A54))),
    "new-tai-lue": ("NotoSansNewTaiLue", span((0x1980, 0x19AB))),
    "lepcha": ("NotoSansLepcha", span((0x1C00, 0x1C23))),
    "limbu": ("NotoSansLimbu", span((0x1900, 0x191E))),
    "meetei": ("NotoSansMeeteiMayek", span((0xABC0, 0xABE2))),
    "saurashtra": ("NotoSansSaurashtra", span((0xA882, 0xA8B3))),
    "kharoshthi": ("NotoSansKharoshthi", span((0x10A10, 0x10A35))),
    "brahmi": ("NotoSansBrahmi", span((0x11003, 0x11037))),
    "ugaritic": ("NotoSansUgaritic", span((0x10380, 0x1039D))),
    "old-persian": ("NotoSansOldPersian", span((0x103A0, 0x103CF))),
    "cypriot": ("NotoSansCypriot", span((0x10800, 0x1083F))),
    "linear-a": ("NotoSansLinearA", span((0x10600, 0x10736))),
    "hieroglyphs": ("NotoSansEgyptianHieroglyphs", span((0x13000, 0x1342E))),
    "cuneiform": ("NotoSansCuneiform", span((0x12000, 0x12399))),
    "phags-pa": ("NotoSansPhagsPa", span((0xA840, 0xA873))),
    "chakma": ("NotoSansChakma", span((0x11103, 0x11126))),
}
# whole scripts kept for pretraining: no class and no script of theirs is in any other named set
PRETRAIN: dict[str, tuple[str, list[str]]] = {
    "vai": ("NotoSansVai", span((0xA500, 0xA60B))),
    "yi": ("NotoSansYi", span((0xA000, 0xA48C))),
    "bamum": ("NotoSansBamum", span((0xA6A0, 0xA6E5))),
    "linear-b": ("NotoSansLinearB", span((0x10000, 0x1005D))),
    "anatolian": ("NotoSansAnatolianHieroglyphs", span((0x14400, 0x14646))),
    "osage": ("NotoSansOsage", span((0x104B0, 0x104D3))),
    "elbasan": ("NotoSansElbasan", span((0x10500, 0x10527))),
    "old-hungarian": ("NotoSansOldHungarian", span((0x10C80, 0x10CB2))),
}
MATH = [
    *"+<=>|~^\u00ac\u00b1\u00d7\u00f7",
    *span((0x2190, 0x21FF), (0x2200, 0x22FF), (0x27C0, 0x27EF), (0x2A00, 0x2A6F)),
]
SHAPES = span((0x25A0, 0x25FF), (0x2600, 0x26FF), (0x2700, 0x27BF), (0x2B00, 0x2B59), (0x2300, 0x23FF))
SYMBOL_FONTS = {"math": ("NotoSansMath", MATH), "shapes": ("NotoSansSymbols2", SHAPES)}
KINDS = {"Lo", "Lu", "Ll"}


def font_file(font: str) -> Path:
    """The file of a font named above."""
    return CJK if font == "CJK" else NOTO / f"{font}-Regular.ttf"


def master(font: ImageFont.FreeTypeFont, char: str) -> np.ndarray | None:
    """The master of `char`, bool [96, 96], or None when it has no ink worth the name."""
    left, top, right, bottom = font.getbbox(char)
    width, height = int(right - left), int(bottom - top)
    if min(width, height) < 2:
        return None
    image = Image.new("L", (width + 8, height + 8))
    ImageDraw.Draw(image).text((4 - left, 4 - top), char, font=font, fill=255)
    box = image.getbbox()
    if box is None:
        return None
    image = image.crop(box)
    scale = INK / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    canvas = Image.new("L", (CANVAS, CANVAS))
    canvas.paste(image.resize(size, Image.Resampling.BOX), ((CANVAS - size[0]) // 2, (CANVAS - size[1]) // 2))
    bits = np.asarray(canvas) >= 128
    return bits if bits.sum() >= 120 else None


def drawn(font: str, chars: list[str]) -> tuple[list[str], np.ndarray]:
    """The characters that the font really has, and their masters uint8 [n, 96, 96]."""
    path = font_file(font)
    cmap = TTFont(path, fontNumber=0, lazy=True).getBestCmap()
    face = ImageFont.truetype(str(path), DRAW, layout_engine=ImageFont.Layout.BASIC)
    found = [(c, m) for c in dict.fromkeys(chars) if ord(c) in cmap and (m := master(face, c)) is not None]
    return [c for c, _ in found], np.stack([m for _, m in found]).astype(np.uint8)


class Collection:
    """Masters that all differ."""

    def __init__(self) -> None:
        self.scripts: dict[str, dict[str, object]] = {}
        self.masters: dict[str, np.ndarray] = {}
        self.dropped: list[list[object]] = []
        self._names: list[str] = []
        self._features = np.zeros((0, 24 * 24), np.float32)

    def add(self, script: str, font: str, chars: list[str], kind: str, limit: int) -> None:
        """Add a script: first drop what looks like a glyph already here, then draw at most `limit`."""
        letters = [c for c in chars if kind == "symbol" or unicodedata.category(c) in KINDS]
        names, masters = drawn(font, letters)
        kept: list[int] = []
        for i, feature in enumerate(blurred(masters)):
            nearest = distances(feature[None], self._features)[0] if len(self._features) else np.ones(1)
            if nearest.min() < THRESHOLD:
                like = self._names[int(nearest.argmin())]
                self.dropped.append([f"{script}/U+{ord(names[i]):04X}", like, round(float(nearest.min()), 4)])
                continue
            kept.append(i)
            self._names.append(f"{script}/U+{ord(names[i]):04X}")
            self._features = np.concatenate([self._features, feature[None]])
        chosen = sorted(shuffled(kept, derive_seed("glyphs", "limit", script))[:limit])
        self.scripts[script] = {
            "kind": kind,
            "font": font_file(font).name,
            "codes": [ord(names[i]) for i in chosen],
        }
        self.masters[script] = masters[chosen]

    def names(self, script: str) -> list[str]:
        """Class names of a script."""
        return [f"{script}/U+{code:04X}" for code in self.scripts[script]["codes"]]  # type: ignore[attr-defined]


def letter_sets(collection: Collection) -> dict[str, list[str]]:
    """Two disjoint sets of equal size; each script gives equally many to both."""
    first: list[str] = []
    second: list[str] = []
    for script in ALPHABETS:
        order = shuffled(collection.names(script), derive_seed("glyphs", "letters", script))
        half = min(len(order) // 2, LETTER_LIMIT)
        first += order[:half]
        second += order[half : 2 * half]
    chosen = sorted(shuffled(range(len(first)), derive_seed("glyphs", "letters"))[:LETTERS])
    return {"letters-1": [first[i] for i in chosen], "letters-2": [second[i] for i in chosen]}


def save(collection: Collection, sets: dict[str, list[str]]) -> None:
    """Write both files; equal input gives equal bytes."""
    with zipfile.ZipFile(OUT / "masters.npz", "w") as archive:
        for script, masters in collection.masters.items():
            buffer = io.BytesIO()
            np.save(buffer, np.packbits(masters.reshape(len(masters), -1), axis=1))
            entry = zipfile.ZipInfo(f"{script}.npy", (2000, 1, 1, 0, 0, 0))
            archive.writestr(entry, buffer.getvalue(), zipfile.ZIP_DEFLATED, 9)
    fonts = sorted(
        {font_file(f) for f, _ in [*ALPHABETS.values(), *OTHERS.values(), *PRETRAIN.values(), *SYMBOL_FONTS.values()]}
    )
    index = {
        "version": 1,
        "licence": "SIL Open Font License 1.1",
        "canvas": CANVAS,
        "threshold": THRESHOLD,
        "fonts": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in fonts},
        "masters_sha256": hashlib.sha256((OUT / "masters.npz").read_bytes()).hexdigest(),
        "scripts": collection.scripts,
        "sets": sets,
        "dropped": collection.dropped,
    }
    text = json.dumps(index, separators=(",", ":"), ensure_ascii=True)
    (OUT / "index.json").write_text(text.replace('"},"', '"},\n"').replace("},", "},\n") + "\n")


def main() -> None:
    """Make the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sheet", type=Path, help="write a picture of all masters, too")
    arguments = parser.parse_args()
    collection = Collection()
    for group, kind in ((ALPHABETS, "alphabet"), (OTHERS, "other"), (PRETRAIN, "pretrain")):
        for script, (font, chars) in group.items():
            collection.add(script, font, chars, kind, 300 if script == "ideographs" else LIMIT)
    for script, (font, chars) in SYMBOL_FONTS.items():
        collection.add(script, font, chars, "symbol", SYMBOLS // 2)
    sets = letter_sets(collection)
    sets["symbols"] = [name for script in SYMBOL_FONTS for name in collection.names(script)]
    sets["glyphs-pretrain"] = [name for script in PRETRAIN for name in collection.names(script)]
    sets["glyphs"] = [name for script in [*ALPHABETS, *OTHERS] for name in collection.names(script)]
    save(collection, sets)
    for script, entry in collection.scripts.items():
        print(f"{script:14s} {entry['kind']:9s} {len(entry['codes']):4d}")  # type: ignore[arg-type]
    print({name: len(names) for name, names in sets.items()}, "dropped", len(collection.dropped))
    if arguments.sheet:
        everything = np.concatenate(list(collection.masters.values()))
        columns = 60
        rows = -(-len(everything) // columns)
        sheet = np.zeros((rows * columns, CANVAS, CANVAS), np.uint8)
        sheet[: len(everything)] = everything
        grid = sheet.reshape(rows, columns, CANVAS, CANVAS).swapaxes(1, 2).reshape(rows * CANVAS, columns * CANVAS)
        Image.fromarray(255 - grid * 255).resize((columns * 32, rows * 32)).save(arguments.sheet)


if __name__ == "__main__":
    main()
