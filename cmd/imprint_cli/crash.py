"""The end of runs that nobody planned: a bug leaves a log and its path, and nothing in it that is somebody's own.

People are asked to attach the log, so it holds names of options and no values, and no value of the environment.
"""

import contextlib
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from imprint import __version__, clock, touch
from imprint.addresses import addresses_in, hosts_only
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.ownership import require_ours
from imprint.paths import find_home
from imprint.results import Notice

_OPTION = re.compile(r"--?[a-z][a-z-]{0,30}")
_LONG = 6
"""Characters from which a value is taken out wherever it stands; shorter ones only as words, and `1` never."""

_SHORTEST = 3


def record_crash(error: BaseException, arguments: Sequence[str]) -> Notice:
    """Write a log with the traceback, under the home or else the temporary folder, and return what to tell."""
    environ = dict(os.environ)
    head = f"imprint {__version__}, Python {sys.version}, {sys.platform}\n{_command(arguments)}\n\n"
    where = _write(head + _without_values("".join(_traceback(error, arguments, environ)), environ))
    said = _message(error, arguments, environ)
    cause = f"{type(error).__name__}: {said}" if said else type(error).__name__
    message = f"this is a bug in Imprint ({cause})"
    if where is None:
        return Notice("bug", message, helps("no-log"))
    return Notice("bug", f"{message}; the log is {where}", helps("report-with-log"))


def _command(arguments: Sequence[str]) -> str:
    """Return the command line as it may be told: the command's words and the names of options."""
    from imprint_cli.registry import COMMANDS, words_of

    words = words_of(arguments, COMMANDS)[:1]
    given = list(arguments)[: list(arguments).index("--")] if "--" in arguments else arguments
    options = [found[0] for argument in given if (found := _OPTION.match(argument))]
    return " ".join(["imprint", *words, *options])


def _values(arguments: Sequence[str]) -> list[str]:
    """Return what was given beside the names of options, the longest first."""
    given = [argument.partition("=")[2] if _OPTION.match(argument) else argument for argument in arguments]
    return sorted({value for value in given if value}, key=len, reverse=True)


def _traceback(error: BaseException, arguments: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts of a traceback, causes first, with each message made safe; the frames hold our own lines."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _traceback(cause, arguments, environ)
        how = "The above exception was the direct cause of" if error.__cause__ else "During the handling of it came"
        yield f"\n{how} this one:\n\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__module__}.{type(error).__qualname__}: {_message(error, arguments, environ)}\n"


def _message(error: BaseException, arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    values = _values(arguments)
    text = hosts_only(str(error), [*addresses_in(environ), *(value for value in values if "://" in value)])
    for value in values:
        # As a whole word where it is short: the value `a` is no reason to cut every a.
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)" if len(value) < _LONG else re.escape(value), "…", text)
    return _without_values(text, environ, _SHORTEST)


def _without_values(text: str, environ: Mapping[str, str], shortest: int = _LONG) -> str:
    """Return a text with values of the environment as their names, and the user's folder as `~`."""
    home = str(Path("~").expanduser())
    named = {value: f"${name}" for name, value in environ.items() if len(value) >= shortest} | {home: "~"}
    # In one pass, so that what stands for one value is not taken for another.
    wanted = sorted((value for value in named if value != "/"), key=len, reverse=True)
    parts = [re.escape(value) if len(value) >= _LONG else rf"(?<!\w){re.escape(value)}(?!\w)" for value in wanted]
    return re.sub("|".join(parts), lambda found: named[found[0]], text) if parts else text


def _write(text: str) -> Path | None:
    name = f"crash-{clock.stamp()}-{os.getpid()}.log"
    try:
        home = find_home(os.environ)
        require_ours(home)
        folders = [(home.logs, home.root)]
    except ImprintError:
        folders = []
    with contextlib.suppress(OSError):
        folders += [(Path(tempfile.gettempdir()), Path(tempfile.gettempdir()))]
    for folder, within in folders:
        try:
            touch.write_file(folder / name, text.encode("utf-8", "backslashreplace"), within=within, private=True)
        except (OSError, ImprintError):
            continue
        return folder / name
    return None
