"""Starts a target's Python as its user does, not isolated, and reads what that prints, loads and imports.

ONNX Runtime is imported only where something of the user's can change how: PYTHONPATH, a sitecustomize, or output.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from imprint.diagnosis.facts import OwnImport
from imprint.probing.children import run_child
from imprint.runtime.check.children import child_environment, enough_memory

SECONDS = 30.0
_LIMIT = 64 * 1024
_MARK = "\x1e"
"""What a program that means to be read never prints: the record separator begins our answer."""

_CHILD = f"""
import os, sys
os.write(1, b"{_MARK}")
import json
sys.path[:] = [folder for folder in sys.path if folder]
# A system's own customization, as Debian has one, lies with the library or under /etc.
library = os.path.dirname(os.path.realpath(os.__file__))
files = [getattr(sys.modules.get(name), "__file__", None) for name in ("sitecustomize", "usercustomize")]
files = [file for file in files if file and not os.path.realpath(file).startswith("/etc/")]
seen = {{"files": [file for file in files if os.path.dirname(os.path.realpath(file)) != library]}}
if seen["files"] or os.environ.get("PYTHONPATH"):
    try:
        import onnxruntime
        seen["file"] = getattr(onnxruntime, "__file__", None)
    except BaseException as error:
        seen["error"] = type(error).__name__ + ": " + str(error)[:2000]
os.write(1, b"{_MARK}" + json.dumps(seen).encode())
"""


def try_import(python: Path, environ: Mapping[str, str]) -> OwnImport | None:
    """Return what the interpreter does for its user; None where it says nothing, as when it does not start."""
    own = {name: value for name, value in environ.items() if name.startswith("PYTHON")}
    argv = [os.fspath(python), "-B", "-c", _CHILD]
    quiet = child_environment(environ)
    ended = run_child(argv, deadline=SECONDS, environ={**quiet, **own}, limit=_LIMIT, memory=enough_memory())
    return parse_import(ended.stdout)


def parse_import(text: str) -> OwnImport | None:
    """Return what the child's output amounts to: what was printed before it began, and its answer."""
    printed, _, rest = text.partition(_MARK)
    try:
        seen = json.loads(rest.rpartition(_MARK)[2])
    except (ValueError, RecursionError):
        return None
    return OwnImport(printed, tuple(dict.fromkeys(seen["files"])), seen.get("error"), seen.get("file"))
