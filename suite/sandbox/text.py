"""What a learner wrote, made fit to be shown: bounded, and without anything that steers a terminal or a page."""

from __future__ import annotations

MAX_QUOTE = 500
"""Longest piece of a learner's text inside a message of ours, in characters."""


def printable(raw: bytes | str) -> str:
    """`raw` with everything but printable characters, newlines and tabs written as an escape.

    Carriage returns (progress bars) become newlines; bytes that are not UTF-8 become backslash escapes. Bidirectional
    overrides, zero-width and control characters are not printable.
    """
    text = raw.decode("utf-8", errors="backslashreplace") if isinstance(raw, bytes) else raw
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c if c.isprintable() or c in "\n\t" else _escape(c) for c in text)


def quote(raw: bytes | str) -> str:
    """`raw` on one line, cut to MAX_QUOTE characters: for messages."""
    text = " ".join(printable(raw[: 4 * MAX_QUOTE]).split())
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 3] + "..."


def _escape(character: str) -> str:
    # A lone surrogate has no unicode_escape on the way out of JSON alone, so the code point is written by hand.
    point = ord(character)
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


class Tail:
    """The last `limit` bytes of a stream, however long it is."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        """Append `data`, forgetting what is too old."""
        self._bytes += data[-self._limit :] if self._limit else b""
        if len(self._bytes) > 2 * self._limit:
            del self._bytes[: -self._limit]

    def text(self) -> str:
        """The tail as display text of at most `limit` characters."""
        return printable(bytes(self._bytes[-self._limit :] if self._limit else b""))[-self._limit :]
