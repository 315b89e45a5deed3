"""Copies the example learner into README.md; `--check` says whether it is there already."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def with_example(readme: str, code: str) -> str:
    """The README with the code between its marks."""
    return re.sub(
        r"(<!-- ncm -->\n```python\n).*?(```\n<!-- /ncm -->)", lambda m: m[1] + code + m[2], readme, flags=re.S
    )


if __name__ == "__main__":
    path = ROOT / "README.md"
    before = path.read_text(encoding="utf-8")
    after = with_example(before, (ROOT / "containers/examples/ncm/ncm.py").read_text(encoding="utf-8"))
    if "--check" in sys.argv:
        sys.exit("README.md shows another example than containers/examples/ncm/ncm.py" if before != after else 0)
    path.write_text(after, encoding="utf-8")
