"""Looks at somebody's own environment before anything is done to it: what it is, or why it cannot be changed.

Only its interpreter is started, to say which Python it is; nothing is written.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from imprint import access
from imprint.errors import ImprintError, NotOursError, UsageError
from imprint.hints import helps
from imprint.paths import Home, not_utf8
from imprint.probing.host import Host
from imprint.probing.interpreter import ask_interpreter
from imprint.quoting import typed
from imprint.runtime.distributions.claims import Ground, mode_of
from imprint.runtime.distributions.inventory import packages_folder
from imprint.runtime.distributions.metadata import InstalledDistribution
from imprint.runtime.target import interpreter_of, read_manifest

OLDEST = (3, 10)
NEWEST = (3, 14)
"""The Pythons that some build has wheels for, read from the wheels on 2026-11-29."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment: its folder of packages, its Python's version, and what markers see there."""

    prefix: Path
    python: Path
    packages: Path
    version: str
    markers: Mapping[str, str] = field(repr=False)


def look_at(prefix: Path, home: Home, host: Host) -> Environment:
    """Return what the environment at `prefix` is.

    Raises ImprintError with the reason when it is none or cannot be changed: `not-an-environment`,
    `externally-managed`, `interpreter-gone`, `interpreter-unusable`, `interpreter-changed`, `interpreter-elsewhere`,
    `python-unsupported`, `managed-target`, `environment-read-only`, `not-ours`, `usage`.
    """
    prefix = prefix.expanduser().absolute()
    python = interpreter_of(prefix)
    require_utf8(prefix)
    _refuse_ours(prefix, home)
    _refuse_no_environment(prefix, python)
    facts = ask_interpreter(host, python)
    version = str(facts["version"])
    if facts.get("implementation") != "cpython" or not OLDEST <= _series(version) <= NEWEST:
        raise ImprintError(
            f"`{prefix}` has {facts.get('implementation')} {version}; "
            f"ONNX Runtime has wheels for CPython {_dotted(OLDEST)} to {_dotted(NEWEST)}",
            hint=helps("one-of-those"),
            code="python-unsupported",
        )
    _refuse_another(prefix, python, facts)
    packages = _packages(prefix, version, free_threaded=bool(facts.get("free_threaded")))
    if not os.access(packages, os.R_OK | os.W_OK | os.X_OK):
        raise read_only(packages)
    # What only reads our records of an environment should not have to load this.
    from imprint.runtime.distributions.pins import marker_environment

    machine = facts.get("machine")
    markers = marker_environment(version, machine=str(machine) if machine else None)
    return Environment(prefix, python, packages, version, markers)


def require_utf8(prefix: Path) -> None:
    """Raise UsageError for a path that is not UTF-8: uv takes no other."""
    if (shown := not_utf8(prefix)) is not None:
        message = f"the path of the environment is not valid UTF-8: {shown}"
        raise UsageError(message, hint=helps("utf8-environment"))


def refuse_read_only(environment: Environment, ground: Ground, touched: Iterable[InstalledDistribution]) -> None:
    """Raise ImprintError (`environment-read-only`) when what is to be changed refuses that, or a RECORD its reading."""
    touched = tuple(touched)
    for record in (found.folder / "RECORD" for found in touched if found.folder is not None):
        if os.path.lexists(record) and not os.access(record, os.R_OK):
            raise ImprintError(
                f"`{record}` cannot be read, so it is not known which files belong to its package",
                hint=helps("make-readable", command=typed("chmod", "u+r", record)),
                code="environment-read-only",
            )
    places = (ground.place(path) for found in touched for path in found.files)
    folders = {os.path.dirname(place) for place in places if place is not None and ground.is_package_file(place)}  # noqa: PTH120
    for folder in (os.fspath(environment.prefix), os.fspath(ground.scripts), *sorted(folders)):
        if stat.S_ISDIR(mode_of(folder) or 0) and not os.access(folder, os.W_OK | os.X_OK):
            raise read_only(Path(folder))


def read_only(folder: Path) -> ImprintError:
    """Return the error that says a folder of an environment cannot be written."""
    return ImprintError(
        f"`{folder}` cannot be written, so the environment cannot be changed",
        hint=helps("own-environment"),
        code="environment-read-only",
    )


def identity_of(prefix: Path) -> str | None:
    """Return what tells an environment from a later one at the same path; None when there is none."""
    try:
        status = (prefix / "pyvenv.cfg").stat()
    except OSError:
        return None
    return f"{status.st_ino}-{status.st_mtime_ns}"


def _refuse_ours(prefix: Path, home: Home) -> None:
    """Refuse what Imprint keeps for itself: of this home, of any other, and what runs this."""
    real = Path(os.path.realpath(prefix))
    ours = [
        folder for folder in (home.runtimes, home.tool, home.cache) if real.is_relative_to(os.path.realpath(folder))
    ]
    if ours or real == Path(os.path.realpath(sys.prefix)) or _is_of_another_home(real):
        raise ImprintError(
            f"`{prefix}` belongs to Imprint itself",
            hint=helps("without-venv"),
            code="managed-target",
        )


def _is_of_another_home(real: Path) -> bool:
    """Whether an environment is a generation or a tool environment of some home of Imprint's."""
    if real.parent.name == "runtimes" and read_manifest(Home(real.parent.parent), real.name) is not None:
        return True
    return real.parent.name == "tool" and real.name.startswith("env-") and Home(real.parent.parent).mutex.exists()


def _refuse_another(prefix: Path, python: Path, facts: Mapping[str, object]) -> None:
    """Refuse an environment whose interpreter is that of another one, or that is a whole installation of Python."""
    executable, base = facts.get("executable"), facts.get("base_prefix")
    real = os.path.realpath(prefix)
    if isinstance(executable, str) and os.path.realpath(Path(executable).parent.parent) != real:
        raise ImprintError(
            f"`{python}` starts `{executable}`, which belongs to another environment",
            hint=helps("name-or-recreate"),
            code="interpreter-elsewhere",
        )
    if isinstance(base, str) and os.path.realpath(base) == real:
        raise ImprintError(
            f"`{prefix}` is a Python installation, not a virtual environment, although it has a `pyvenv.cfg`",
            hint=helps("create-an-environment", create=_create()),
            code="not-an-environment",
        )


def _create(prefix: Path | str = "PATH") -> str:
    return typed("py" if sys.platform == "win32" else "python3", "-m", "venv", prefix)


def _refuse_no_environment(prefix: Path, python: Path) -> None:
    if access.is_file(prefix / "pyvenv.cfg"):
        return
    for marker in sorted(prefix.glob("lib/python3*/EXTERNALLY-MANAGED")):
        raise ImprintError(
            f"`{prefix}` is the system's own Python, managed by its package manager (`{marker}`)",
            hint=helps("create-an-environment", create=_create()),
            code="externally-managed",
        )
    if not os.path.lexists(prefix):
        hint = helps("create-it", create=_create(prefix))
        raise ImprintError(f"`{prefix}` does not exist", hint=hint, code="not-an-environment")
    if not access.is_folder(prefix):
        problem = "is a file; name the folder of the environment"
    elif not os.path.lexists(python):
        problem = "is not a virtual environment: it has no `pyvenv.cfg`"
    else:
        problem = "is a Python installation, not a virtual environment: it has no `pyvenv.cfg`"
    raise ImprintError(
        f"`{prefix}` {problem}",
        hint=helps("create-an-environment", create=_create()),
        code="not-an-environment",
    )


def _packages(prefix: Path, version: str, *, free_threaded: bool) -> Path:
    series = _dotted(_series(version)) + ("t" if free_threaded else "")
    folder = prefix / "Lib" if sys.platform == "win32" else prefix / "lib" / f"python{series}"
    packages = folder / "site-packages"
    found = packages_folder(prefix)
    if access.is_folder(packages) and found is not None and found.samefile(packages):
        if not Path(os.path.realpath(packages)).is_relative_to(os.path.realpath(prefix)):
            raise NotOursError(
                f"`{packages}` leads to `{os.path.realpath(packages)}`, outside the environment",
                hint=helps("name-their-environment"),
            )
        return packages
    there = f"`{found}`" if found is not None else "no folder of packages"
    raise ImprintError(
        f"`{prefix}` runs Python {version} now but holds {there}: it was created with another Python",
        hint=helps("recreate"),
        code="interpreter-changed",
    )


def _series(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _dotted(series: tuple[int, int]) -> str:
    return f"{series[0]}.{series[1]}"
