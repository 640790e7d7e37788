"""Tells texts in UTF-16 and UTF-32 without a mark from texts in UTF-8 and from those with one byte a character. Pure.

Nothing proves an encoding. What speaks for two bytes a character: zeros on one side of the pairs, as letters have them;
or pairs that are characters of the scripts that people write, where the single bytes are no words.
"""

from __future__ import annotations

import re

SAMPLE = 4096
"""Bytes of the beginning that are looked at."""

_SCRIPTS = (
    *((0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x6FF), (0x900, 0xE7F), (0x2010, 0x2030), (0x3000, 0x30FF)),
    *((0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFF00, 0xFFEF)),
)
"""Latin, Greek to Arabic, Indic and Thai, punctuation, Japanese, Chinese, Korean and full-width forms (Unicode 16)."""

_MOST = 0.9
"""The share of characters of these scripts that speaks for an encoding."""

_ODD = re.compile(rb"[^A-Za-z0-9 \t\r\n,.;:!?'\"()\-\xa1\xab\xbb\xbf-\xff]")
"""Bytes that words in one byte a character hardly have."""

_FEW = 0.08
_CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")


def wide_although_valid(line: bytes, start: bytes) -> str | None:
    """Return the encoding with two or four bytes a character that a line of valid UTF-8 is in all the same.

    That takes more: control characters, as half a character of another encoding is one, and no character beyond ASCII.
    """
    if not line.isascii() or _CONTROLS.search(line) is None:
        return None
    if len(line) < 8:
        return _by_zeros(start) if len(start) >= 4 and start.count(0) >= 0.4 * len(start) else None
    return wide_encoding(start)


def wide_encoding(start: bytes) -> str | None:
    """Return the encoding with two or four bytes a character that a text without a mark begins in, None for others."""
    sample = start[:SAMPLE]
    if len(sample) < 4:
        return None
    if sample.count(0) >= 0.4 * len(sample):
        return _by_zeros(sample)
    # In words of letters any two bytes are a Chinese character too.
    if len(_ODD.findall(sample)) < _FEW * len(sample):
        return None
    likely, name = max((_share(sample, name), name) for name in ("UTF-16LE", "UTF-16BE"))
    return name if likely >= _MOST else None


def _by_zeros(sample: bytes) -> str | None:
    """Return the encoding of a text in letters whose bytes are zero on one side."""
    for name in ("UTF-32LE", "UTF-32BE"):
        if _share(sample, name) >= _MOST:
            return name
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if even and odd:
        return None
    name = "UTF-16LE" if odd else "UTF-16BE"
    return name if _share(sample, name) >= _MOST else None


def _share(sample: bytes, name: str) -> float:
    """Return which share of the pairs are characters of the scripts above."""
    size = 4 if "32" in name else 2
    text = sample[: len(sample) // size * size].decode(name, "replace")
    if not text:
        return 0.0
    return sum(char in "\t\r\n" or any(low <= ord(char) <= high for low, high in _SCRIPTS) for char in text) / len(text)
