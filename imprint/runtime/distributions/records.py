"""Reads the metadata files of installed distributions, which anybody may have written: bounded, and never trusted.

A name or a path that comes out of here is what a file says. Who it belongs to, and whether it may be touched, is
`claims.py`'s to judge.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import csv
import hashlib
import io
import os
import re
import stat
from pathlib import Path

from imprint import access

METADATA_LIMIT = 16 * 1024 * 1024
RECORD_LIMIT = 64 * 1024 * 1024
"""Bytes; the largest RECORD of a wheel that we know has 3 MB, the longest METADATA 1 MB."""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,212}[A-Za-z0-9])?")
_SEPARATORS = re.compile(r"[-_.]+")


def normalize(name: str) -> str:
    """Return a distribution's name as indexes compare it (PEP 503)."""
    return _SEPARATORS.sub("-", name).lower()


def is_name(name: str) -> bool:
    """Whether this is the name of a distribution and nothing else, such as an option or an address (PEP 508)."""
    return _NAME.fullmatch(name) is not None


def read_text(path: Path, limit: int = METADATA_LIMIT) -> str | None:
    """Return the text of a regular file; None when there is none, it cannot be read, or it has more than `limit` bytes.

    What is no UTF-8 comes as lone surrogates, as in paths, so that a path stays the one that is meant.
    """
    try:
        # A FIFO without a writer would block a plain open for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(limit + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return _decode(content) if len(content) <= limit else None


def _decode(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace")
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def read_rows(info: Path) -> tuple[tuple[str, ...], ...] | None:
    """Return the rows of the RECORD in a metadata folder as (path, hash, size …); None when there is no RECORD.

    A row that is no CSV is left out; the others still count. Paths have `/`, also those that were written on Windows
    and copied.
    """
    text = read_text(info / "RECORD", RECORD_LIMIT)
    if text is None:
        return None
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        rows = []
        for line in text.splitlines():
            try:
                rows.extend(csv.reader([line]))
            except csv.Error:
                continue
    rows = [row for row in rows if row and row[0]]
    return tuple((row[0] if "/" in row[0] else row[0].replace("\\", "/"), *row[1:]) for row in rows)


def hash_is(path: Path, recorded: str) -> bool:
    """Whether a file's content has a hash as RECORD writes it, such as `sha256=…`; False when it cannot be read."""
    algorithm, _, expected = recorded.partition("=")
    try:
        if not access.is_file(path):
            return False
        wanted = base64.urlsafe_b64decode(expected + "=" * (-len(expected) % 4))
        with path.open("rb") as file:
            return hashlib.file_digest(file, algorithm).digest() == wanted
    except (OSError, ValueError, binascii.Error):
        return False
