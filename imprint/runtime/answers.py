"""Runs a child that answers in a file of its own, so that nothing the target prints can hide or forge the answer."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from imprint.probing.children import run_child
from imprint.probing.host import ChildResult

LIMIT = 256 * 1024
"""Bytes kept of each stream, and of the end of the answer."""


def ask_child(argv: Sequence[str], environ: Mapping[str, str], deadline: float) -> tuple[ChildResult, str]:
    """Run `argv` with one more argument, a file to answer in; return how it ended, and the end of what is there.

    The file is in a folder of its own that the child may use too, and that is removed. Where none can be made the
    argument is missing, the child answers on stdout, and the text is empty.
    """
    with contextlib.ExitStack() as stack:
        path, more = None, []
        with contextlib.suppress(OSError):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="imprint-", ignore_cleanup_errors=True))
            path = Path(folder, "answer")
            more = [os.fspath(path)]
        ended = run_child([*argv, *more], deadline=deadline, environ=environ, limit=LIMIT)
        return ended, _end_of(path)


def _end_of(path: Path | None) -> str:
    try:
        if path is None:
            return ""
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LIMIT))
            return file.read(LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""
