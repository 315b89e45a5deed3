"""Text that others wrote, made safe to show: no control or direction characters, capped. Escaping comes after it."""

from __future__ import annotations

import hashlib
import re
import unicodedata

MAX_CELL = 300
MAX_LOG = 20_000

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_KEPT = {"\n", "\t"}


def visible(text: str) -> str:
    """`text` without characters that draw outside their place or not at all.

    Control, format and private-use characters and lone surrogates become U+FFFD, so that nothing is hidden silently.
    """
    return "".join("\ufffd" if _is_unsafe(c) else c for c in text)


def clean(text: str, longest: int = MAX_CELL) -> str:
    """`visible` text, at most `longest` characters of it."""
    return visible(text) if len(text) <= longest else f"{visible(text[: longest - 1])}…"


def clean_log(text: str) -> str:
    """The end of a log: newlines kept, the beginning cut off if it is long."""
    return clean(text if len(text) <= MAX_LOG else f"…{text[-MAX_LOG + 1 :]}", MAX_LOG)


def file_name(name: str) -> str:
    """A file name without extension for something named `name`: itself if it is plain, else a hash of it."""
    return name if _SAFE_NAME.fullmatch(name) else f"x-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def https_only(address: str | None) -> str | None:
    """The address if it may be linked to; None otherwise."""
    return address if address and re.fullmatch(r"https://[^\s<>\"'\\]{1,300}", address) else None


def _is_unsafe(character: str) -> bool:
    return character not in _KEPT and unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
