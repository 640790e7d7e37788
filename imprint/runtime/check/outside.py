"""Recognises the causes of a failure that lie outside an environment: no installation mends them.

Each is a code of the catalogue, with the words that its remedies need. The messages are those of glibc 2.28 to 2.41
and CPython 3.9 to 3.14 (seen on 2026-11-30).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from imprint.causes.catalogue import as_one, catalogue, remedies_for
from imprint.causes.circumstances import Circumstances
from imprint.quoting import quoted
from imprint.runtime.check.libraries import supplier_of
from imprint.values import Record


class Outside(Record):
    """A cause outside an environment: its code, a sentence fragment, and what its remedies need."""

    code: str
    seen: str
    words: Mapping[str, str]
    traits: tuple[str, ...] = ()

    def fix(self, circumstances: Circumstances) -> str | None:
        """Return what helps there."""
        return as_one(remedies_for(self.code, circumstances.with_(*self.traits, **self.words)))


_OLD = r"(?P<path>\S*?(?P<library>[\w.+-]+\.so[\w.]*)): version [`'](?P<version>[A-Z]\w*_[\d.]+)' not found"
_MISSING = r"(?P<library>[\w.+-]+\.so[\w.]*): cannot open shared object file"
_BUNDLED = r"-[0-9a-f]{8}\.so"
"""In the name of a library that a wheel brings in a folder of its own, as auditwheel names it."""
_MODULE = r"No module named '(?P<module>_?\w+)'"
_DENIED = (
    r"(?P<library>[^\s:']+): cannot open shared object file: Permission denied"
    r"|\[Errno 13\] Permission denied: '(?P<file>[^'\n]+)'"
)
_NOEXEC = r"(?P<library>[\w.+-]+\.so[\w.]*): failed to map segment from shared object"
_PROC = r"requires procfs"
_STACK = r"(?P<path>\S*?(?P<library>[\w.+-]+\.so[\w.]*)): cannot enable executable stack"
_LIMIT = r"Resource temporarily unavailable|can't start new thread|\[Errno 11\]|pthread_create failed|fork: retry"
_PRELOAD = r"object '(?P<path>[^']+)' from LD_PRELOAD cannot be preloaded"
_BAD = r"(?P<path>\S*?(?P<library>[\w.+-]+\.so[\w.]*)): (?P<flaw>[^\n;]+)"


def outside_cause(text: str, environ: Mapping[str, str]) -> Outside | None:
    """Return the cause outside the environment that an error names, None where it names none.

    `text` is what the loader, Python or the system said, whole; `environ` is what the child that said it was given.
    """
    for judge in (
        _denied,
        _no_proc,
        _stack,
        _old_library,
        _noexec,
        _preload,
        _odd_library,
        _missing_library,
        _module,
        _limit,
    ):
        found = judge(text, environ)
        if found is not None:
            return found
    return None


def _denied(text: str, _environ: Mapping[str, str]) -> Outside | None:
    if (found := re.search(_DENIED, text)) is None:
        return None
    path = found["library"] or found["file"]
    if os.path.isabs(path) and os.access(path, os.R_OK):  # noqa: PTH117 - text
        # Something else is wrong there: what was to be run may be no file.
        return None
    folder = os.path.dirname(path)  # noqa: PTH120 - text
    words = {"folder": quoted(folder)} if folder else {}
    return Outside("file-denied", f"this user may not read {path}", words)


def _no_proc(text: str, _environ: Mapping[str, str]) -> Outside | None:
    if re.search(_PROC, text) is None:
        return None
    return Outside("no-proc", "/proc is not mounted here, and ONNX Runtime opens a model through it", {})


def _stack(text: str, _environ: Mapping[str, str]) -> Outside | None:
    if (found := re.search(_STACK, text)) is None:
        return None
    seen = f"this system does not allow the executable stack that {found['library']} needs"
    where = {"file": quoted(found["path"])} if "/" in found["path"] else {}
    return Outside("exec-stack-refused", seen, {"library": found["library"], **where})


def _old_library(text: str, environ: Mapping[str, str]) -> Outside | None:
    if (found := re.search(_OLD, text)) is None:
        return None
    folder = _in_loader_path(found["path"], environ)
    seen = f"{found['path'] if folder else found['library']} is too old: it has no {found['version']}"
    return Outside(
        "system-library-old", seen, {"library": found["library"]}, ("loader-path",) if folder is not None else ()
    )


def _noexec(text: str, _environ: Mapping[str, str]) -> Outside | None:
    if (found := re.search(_NOEXEC, text)) is None:
        return None
    return Outside("noexec-disk", f"the system does not let {found['library']} be loaded from where it lies", {})


def _preload(text: str, environ: Mapping[str, str]) -> Outside | None:
    if (found := re.search(_PRELOAD, text)) is None or "LD_PRELOAD" not in environ:
        return None
    return Outside(
        "loader-path-interferes",
        f"LD_PRELOAD names {found['path']}, which cannot be loaded",
        {"variable": "LD_PRELOAD"},
    )


def _odd_library(text: str, environ: Mapping[str, str]) -> Outside | None:
    """Find a library that is wrong and comes from a folder of LD_LIBRARY_PATH, or is in LD_PRELOAD."""
    for found in re.finditer(_BAD, text):
        if "cannot open shared object" in found["flaw"]:
            continue
        if found["path"] in re.split(r"[\s:]+", environ.get("LD_PRELOAD", "")):
            seen = f"LD_PRELOAD loads {found['path']} first: {found['flaw']}"
            return Outside("loader-path-interferes", seen, {"variable": "LD_PRELOAD"})
        folder = _in_loader_path(found["path"], environ)
        if folder is not None:
            seen = f"LD_LIBRARY_PATH makes {found['path']} load first: {found['flaw']}"
            return Outside("loader-path-interferes", seen, {"variable": "LD_LIBRARY_PATH", "folder": quoted(folder)})
    return None


def _in_loader_path(path: str, environ: Mapping[str, str]) -> str | None:
    """Return the folder of LD_LIBRARY_PATH that a library comes from; of one that is named alone, where one lies."""
    folder, _, name = path.rpartition("/")
    named = [one for one in environ.get("LD_LIBRARY_PATH", "").split(":") if one]
    if folder:
        return next((one for one in named if one.rstrip("/") == folder), None)
    return next((one for one in named if os.path.lexists(f"{one}/{name}")), None)


def _missing_library(text: str, _environ: Mapping[str, str]) -> Outside | None:
    if (found := re.search(_MISSING, text)) is None:
        return None
    library = found["library"]
    # What a package brings is another check's: installing does help there.
    brought = "onnxruntime" in library or re.search(_BUNDLED, library) is not None
    if brought or supplier_of(library) is not None or supplier_of(library, "12.0") is not None:
        return None
    packages = catalogue().system_packages.get(library, {})
    words = {f"{system}_package": package for system, package in packages.items()}
    return Outside("system-library-missing", f"the system library {library} is missing", {"library": library, **words})


def _module(text: str, _environ: Mapping[str, str]) -> Outside | None:
    found = re.search(_MODULE, text)
    if found is None or found["module"] not in catalogue().headers:
        return None
    seen = f"this Python has no module {found['module']}, which is part of the standard library"
    return Outside("python-module-missing", seen, {"headers": f"`{catalogue().headers[found['module']]}`"})


def _limit(text: str, _environ: Mapping[str, str]) -> Outside | None:
    if re.search(_LIMIT, text) is None:
        return None
    return Outside("process-limit", "the system does not allow another process or thread (EAGAIN)", {})
