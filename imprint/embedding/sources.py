"""Reads texts one at a time, as UTF-8 bytes, from arguments, lines or JSON lines; errors name the line."""

from __future__ import annotations

import codecs
import json
import os
import stat
from collections.abc import Iterable, Iterator
from typing import IO

from imprint.errors import UsageError
from imprint.hints import helps
from imprint.quoting import typed

LONGEST = 16 * 1024 * 1024
"""A longer line (bytes) is refused: it is no text, and memory must not follow the input."""

COUNTED = 256 * 1024 * 1024
"""Bytes of a file whose lines are counted first; that takes a fraction of a second."""

_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""Byte order marks of what is not UTF-8; the longer ones come first, since one begins like a shorter one."""

STDIN = "standard input"
"""How errors name a source that is no file."""


def texts_of_arguments(texts: Iterable[str]) -> Iterator[bytes]:
    """Yield the texts of a command line. Raises UsageError for one that was not valid UTF-8."""
    for number, text in enumerate(texts, 1):
        yield _encoded(text, f"text {number}")


def texts_of_lines(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield one text a line, without its LF or CRLF; a blank line is an empty text. Raises UsageError."""
    for number, line in _lines(stream, name):
        _checked(line, name, number)
        yield line


def texts_of_json_lines(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield the text of each line: a JSON string, or an object with a string `text`. Raises UsageError."""
    for number, line in _lines(stream, name):
        _checked(line, name, number)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise UsageError(
                f"{name}, line {number}: not JSON",
                hint=helps("json-lines"),
            ) from None
        text = value.get("text") if isinstance(value, dict) else value
        if not isinstance(text, str):
            raise UsageError(f'{name}, line {number}: neither a string nor an object with a string "text"')
        yield _encoded(text, f"{name}, line {number}")


def _lines(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(LONGEST + 3):
        number += 1
        if number == 1:
            _refuse_wide(line, name)
            line = line.removeprefix(codecs.BOM_UTF8)  # what an editor put before the first text
        text = line[:-1] if line.endswith(b"\n") else line
        text = text.removesuffix(b"\r") if len(text) < len(line) else text
        if len(text) > LONGEST:
            raise UsageError(f"{name}, line {number}: longer than 16 MiB")
        yield number, text


def _checked(line: bytes, name: str, number: int) -> None:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name}, line {number}: not valid UTF-8 (byte {error.start + 1} is 0x{line[error.start]:02x})",
            hint=_how_to_convert("ISO-8859-1", name, "convert-if-latin-1"),
        ) from None


def _refuse_wide(line: bytes, name: str) -> None:
    """Raise UsageError when the first line is in an encoding of two or four bytes a character."""
    for mark, encoding in _MARKS.items():
        if line.startswith(mark):
            raise UsageError(
                f"{name} is {encoding}, not UTF-8: it starts with the byte order mark {mark.hex(' ')}",
                hint=_how_to_convert(encoding, name),
            )
    for start, encoding in ((1, "UTF-16LE"), (0, "UTF-16BE")):
        if len(line) >= 4 and not any(line[start::2]) and all(line[1 - start :: 2][:2]):
            raise UsageError(
                f"{name} is {encoding}, not UTF-8: every second byte of its first line is zero",
                hint=_how_to_convert(encoding, name),
            )


def _how_to_convert(encoding: str, name: str, hint: str = "convert") -> str:
    return helps(hint, command=typed("iconv", "-f", encoding, "-t", "UTF-8", *([] if name == STDIN else [name])))


def count_lines(stream: IO[bytes]) -> int | None:
    """Return how many lines are left in a stream, without moving it; None for one that is no file, or a large one."""
    try:
        descriptor = stream.fileno()
        status, place = os.fstat(descriptor), stream.tell()
        if not stat.S_ISREG(status.st_mode) or status.st_size - place > COUNTED:
            return None
        count, last = 0, b"\n"
        while block := os.pread(descriptor, 1 << 20, place):
            count, last, place = count + block.count(b"\n"), block[-1:], place + len(block)
    except (OSError, AttributeError):  # Windows has no pread
        return None
    return count + (last != b"\n")


def _encoded(text: str, where: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            f"{where}: not valid Unicode (half of a surrogate pair, or bytes that are not UTF-8)"
        ) from None
