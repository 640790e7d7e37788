"""Tells texts in UTF-16 and UTF-32 without a mark from texts in UTF-8 and from those with one byte a character. Pure.

Nothing proves an encoding. What speaks for two bytes a character: zeros on one side of the pairs, as letters have them;
or control characters, as half a character, where all pairs are characters of the scripts that people write. Any two
bytes of a text in Windows-1252 or Shift-JIS may be a Chinese character, but such a text has no control characters.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

SAMPLE = 4096
"""Bytes of the beginning that are looked at."""

_SCRIPTS = (
    *((0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x6FF), (0x900, 0xE7F), (0x2010, 0x2030), (0x3000, 0x30FF)),
    *((0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFF00, 0xFFEF), (0x1F300, 0x1FAFF)),
)
"""Latin, Greek to Arabic, Indic and Thai, punctuation, Japanese, Chinese, Korean, full-width forms, emoji."""

_MOST = 0.9
"""The share of characters of these scripts that speaks for an encoding."""

_NOT_WESTERN = re.compile(rb"[\x81-\x83\x86-\x8b\x8d-\x90\x98\x9a\x9b\x9d-\x9f\xa4\xa6\xa8\xac\xaf\xb8]|[\xc0-\xff]{3}")
"""Rare signs of Windows-1252, bytes that are none of it, and three letters beyond ASCII in a row."""

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
    if _CONTROLS.search(sample) is None or (len(start) < SAMPLE and not start.endswith(b"\n") and len(start) % 2):
        return None
    likely, name = max((_share(sample, name), name) for name in ("UTF-16LE", "UTF-16BE"))
    return name if likely >= _MOST else None


def one_byte_encoding(text: bytes) -> str | None:
    """Return Windows-1252 for what reads as Western text in it, None where another encoding is as likely."""
    likely = _NOT_WESTERN.search(text) is None and sum(byte >= 0x80 for byte in text) <= 2 * len(text) / 3
    return "WINDOWS-1252" if likely else None


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
    """Return which share of the characters is of the scripts above; 0 where it is no text in that encoding.

    The sample may end within a character.
    """
    try:
        text = codecs.getincrementaldecoder(name)().decode(sample)
    except UnicodeDecodeError:
        return 0.0
    if not text or any(unicodedata.category(char) in {"Cn", "Co"} for char in text):
        return 0.0
    return sum(char in "\t\r\n" or any(low <= ord(char) <= high for low, high in _SCRIPTS) for char in text) / len(text)
