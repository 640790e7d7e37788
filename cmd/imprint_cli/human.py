"""The face for people: notices on stderr, colour rules, sizes, tables. Every state is a word, never colour alone.

All text for a person leaves here, and a test finds what is written elsewhere: whatever it is made of, no terminal acts
on any of it but the colours and the redrawn line of this module.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from imprint.printable import printable, printable_line
from imprint.results import Notice

_COLOURS = {"error": "31;1", "warning": "33;1", "hint": "36;1", "ok": "32", "skipped": "2"}


def wants_colour(environ: Mapping[str, str], *, is_tty: bool) -> bool:
    """Decide on colour: NO_COLOR beats FORCE_COLOR (or CLICOLOR_FORCE) beats the terminal; TERM=dumb has none."""
    if environ.get("NO_COLOR"):
        return False
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        if environ.get(name):
            return environ[name] != "0"
    return is_tty and environ.get("TERM") != "dumb"


def _painted(label: str, stream: TextIO) -> str:
    if not wants_colour(os.environ, is_tty=stream.isatty()):
        return f"{label}: "
    return f"\x1b[{_COLOURS[label]}m{label}:\x1b[0m "


def animates(stream: TextIO) -> bool:
    """Whether a line may be redrawn: only on a terminal that can."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def show(text: str) -> None:
    """Write an answer of one or more lines to stdout. Raises OSError where it cannot be written."""
    sys.stdout.write(printable(text) + "\n")
    sys.stdout.flush()


def say(text: str, stream: TextIO | None = None, *, label: str | None = None) -> None:
    """Write talk and a newline to stderr or another stream, after a label (error, warning, hint) in its colour."""
    stream = stream or sys.stderr
    _write((_painted(label, stream) if label else "") + printable(text) + "\n", stream)


def ask(question: str) -> None:
    """Write a question to stderr and leave the cursor behind it."""
    _write(printable_line(question) + " ", sys.stderr)


def draw(text: str, stream: TextIO) -> None:
    """Write one line in place of the one that was drawn before; an empty one only removes that."""
    _write("\r\x1b[K" + printable_line(text), stream)


def _write(text: str, stream: TextIO) -> None:
    """Write at once. Where nobody can be told (its disk is full, its reader is gone), it is lost."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        silence(stream)


def silence(stream: TextIO) -> None:
    """Send what a stream still holds, and all that follows, nowhere: it cannot be written any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def say_hint(text: str) -> None:
    """Write `hint: …` to stderr."""
    say(printable_line(text), label="hint")


def say_notice(label: str, notice: Notice) -> None:
    """Write a notice to stderr: `error: …` or `warning: …`, and its `hint: …` below."""
    say(printable_line(notice.message), label=label)
    if notice.hint:
        say(printable_line(notice.hint), label="hint")


def say_notices(warnings: Iterable[Notice], errors: Iterable[Notice]) -> None:
    """Write all warnings, then all errors, to stderr."""
    for notice in warnings:
        say_notice("warning", notice)
    for notice in errors:
        say_notice("error", notice)


def duration(seconds: float) -> str:
    """Return seconds as people say them: `8 s`, `9 min`, `2 h 5 min`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an aligned table with a head line; columns are as wide as their widest cell, no trailing spaces."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
