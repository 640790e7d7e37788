"""The end of runs that nobody planned: a bug leaves a log and its path."""

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from imprint import __version__
from imprint.errors import ImprintError
from imprint.operations.result import Remark
from imprint.paths import find_home


def record_crash(error: BaseException, arguments: Sequence[str]) -> Remark:
    """Write a log with the traceback, under the home or else the temporary folder, and return what to tell.

    The log names the command's options but not its other arguments: those may be a person's texts.
    """
    options = [argument if argument.startswith("--") else "…" for argument in arguments[1:]]
    text = (
        f"imprint {__version__}, Python {sys.version}, {sys.platform}\n"
        f"imprint {' '.join([*arguments[:1], *options])}\n\n" + "".join(traceback.format_exception(error))
    )
    where = _write(text)
    cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    message = f"this is a bug in Imprint ({cause})"
    if where is None:
        return Remark(
            "bug", message, "no log could be written; run it again with IMPRINT_HOME set to a writable folder"
        )
    return Remark("bug", f"{message}; the log is {where}", "please report it with that log")


def _write(text: str) -> Path | None:
    name = f"crash-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}.log"
    try:
        folders = [find_home(os.environ).logs]
    except ImprintError:
        folders = []
    for folder in (*folders, Path(tempfile.gettempdir())):
        path = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue
        return path
    return None
