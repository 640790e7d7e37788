"""Reads texts one at a time, as UTF-8 bytes, from arguments, lines or JSON lines; errors name the line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO

from imprint.errors import UsageError

LONGEST = 16 * 1024 * 1024
"""A longer line (bytes) is refused: it is no text, and memory must not follow the input."""

_BOM = b"\xef\xbb\xbf"


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
                hint='each line is a string or `{"text": …}`; `--input-format lines` reads plain text',
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
            line = line.removeprefix(_BOM)  # what an editor put before the first text
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
            hint="convert it to UTF-8, for example with `iconv -t UTF-8`",
        ) from None


def _encoded(text: str, where: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            f"{where}: not valid Unicode (half of a surrogate pair, or bytes that are not UTF-8)"
        ) from None
