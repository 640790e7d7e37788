"""Reads texts one at a time, as UTF-8 bytes, from arguments, lines or JSON lines; errors name the line."""

from __future__ import annotations

import codecs
import json
import os
import stat
from collections.abc import Iterable, Iterator
from typing import IO

from imprint.embedding import encodings
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
        try:
            yield text.encode("utf-8")
        except UnicodeEncodeError:
            raise _argument_error(text, number) from None


def _argument_error(text: str, number: int) -> UsageError:
    """Return the error of an argument that is not UTF-8, with what would convert the bytes that were given."""
    try:
        given = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return UsageError(f"text {number}: not valid Unicode (half of a surrogate pair)")
    encoding = encodings.wide_encoding(given) or encodings.one_byte_encoding(given)
    hint = helps("convert-argument", encoding=encoding) if encoding else helps("give-utf8")
    return UsageError(f"text {number}: not valid UTF-8", hint=hint)


def texts_of_lines(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield one text a line, without its LF or CRLF; a blank line is an empty text. Raises UsageError."""
    for _, line in _lines(stream, name):
        yield line


def texts_of_json_lines(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """Yield the text of each line: a JSON string, or an object with a string `text`. Raises UsageError."""
    for number, line in _lines(stream, name):
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
    number, start = 0, b""
    while line := stream.readline(LONGEST + 3):
        number += 1
        if len(start) < encodings.SAMPLE:
            start += line[: encodings.SAMPLE]
        if number == 1:
            _refuse_marked(line, name)
            line = line.removeprefix(codecs.BOM_UTF8)  # what an editor put before the first text
        text = line[:-1] if line.endswith(b"\n") else line
        text = text.removesuffix(b"\r") if len(text) < len(line) else text
        if len(text) > LONGEST:
            raise UsageError(f"{name}, line {number}: longer than 16 MiB")
        _checked(text, start, name, number, stream)
        yield number, text


def _checked(line: bytes, start: bytes, name: str, number: int, stream: IO[bytes]) -> None:
    """Raise UsageError for a line that is not UTF-8; `start` is how the whole source begins, this line included."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        if stream.seekable():  # half a character of another encoding ends a line too: more of it tells more
            start += stream.read(encodings.SAMPLE)
        wide = encodings.wide_encoding(start)
        if wide is not None:
            raise _wide_error(wide, name) from None
        raise UsageError(
            f"{name}, line {number}: not valid UTF-8 (byte {error.start + 1} is 0x{line[error.start]:02x})",
            hint=_how_to_convert_bytes(start + line, name),
        ) from None
    if number == 1 and (wide := encodings.wide_although_valid(line, start)) is not None:
        raise _wide_error(wide, name)


def _wide_error(encoding: str, name: str) -> UsageError:
    return UsageError(f"{name} seems to be {encoding}, not UTF-8", hint=_how_to_convert(encoding, name))


def _refuse_marked(line: bytes, name: str) -> None:
    """Raise UsageError when the first line begins with the mark of an encoding of two or four bytes a character."""
    for mark, encoding in _MARKS.items():
        if line.startswith(mark):
            raise UsageError(
                f"{name} is {encoding}, not UTF-8: it starts with the byte order mark {mark.hex(' ')}",
                hint=_how_to_convert(encoding, name),
            )


def _how_to_convert(encoding: str, name: str, hint: str = "convert") -> str:
    return helps(hint, command=typed("iconv", "-f", encoding, "-t", "UTF-8", *([] if name == STDIN else [name])))


def _how_to_convert_bytes(text: bytes, name: str) -> str:
    """Return how to convert a text that has no more than one byte a letter, or whose encoding nothing tells."""
    encoding = encodings.one_byte_encoding(text)
    if encoding is not None:
        return _how_to_convert(encoding, name, "convert-if-western")
    return helps("convert-some-way") if name == STDIN else helps("convert-guess", command=typed("file", "-i", name))


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
