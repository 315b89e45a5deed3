"""What `suite new` writes. The templates are learners that pass `suite check` as they stand."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from suite.errors import UsageError

_MANIFEST = """\
slug = "{slug}"
title = "{title}"
description = ""
authors = ["Your name"]
image = "{slug}:latest"
group = "scratch"
source = "https://example.org/your/repository"
paper = ""
licence = "Apache-2.0"
"""


def write_scaffold(name: str, parent: Path, template: str) -> Path:
    """Make `parent/name` from the template `numpy` or `torch`. Raises UsageError if that cannot be."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
        raise UsageError(f"{name!r} is not a name.", "Use lower-case letters, digits and hyphens.")
    folder = parent / name
    if folder.exists():
        raise UsageError(f"{folder} exists already.", "Choose another name.")
    title = name.replace("-", " ").capitalize()
    folder.mkdir()
    for file in ("learner.py", "Dockerfile"):
        text = (resources.files("suite.cli.scaffold") / template / file).read_text(encoding="utf-8")
        (folder / file).write_text(text.replace("__TITLE__", title), encoding="utf-8")
    (folder / f"{name}.toml").write_text(_MANIFEST.format(slug=name, title=title), encoding="utf-8")
    return folder
