"""What a target is, and which generation of the managed one is current. Reads two small files; changes nothing.

`data/current.json` points to a generation, `runtimes/ID/manifest.json` says what that generation holds. A manifest
is written last, so a folder without one is unfinished.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from imprint import access, ownership
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.paths import Home
from imprint.state import files
from imprint.state.findings import UNHEARD, Finding, Findings
from imprint.values import Document, Record

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,120}")
_LONGEST_CONFIG = 64 * 1024


class Manifest(Record):
    """What a generation holds and how it was made; sizes in bytes, times ISO 8601 UTC.

    `locks` maps a lock's file name to the SHA-256 of its bytes, `distributions` a normalized name to its version.
    `check` is the summary of the check that this generation passed, None when another machine makes it.
    """

    id: str
    build: str
    version: str
    locks: Mapping[str, str]
    python: str
    python_executable: str
    uv: str | None
    created: str
    distributions: Mapping[str, str]
    size: int | None = None
    check: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """An environment that holds ONNX Runtime, or is meant to.

    `managed` tells the generations under the home from somebody's own environment (`--venv`). `build`, `version`
    and `since` are what our records say of it; None where there is no record.
    """

    prefix: Path
    python: Path
    managed: bool
    generation: str | None = None
    build: str | None = None
    version: str | None = None
    since: str | None = None
    manifest: Manifest | None = field(default=None, repr=False)
    refused: ImprintError | None = field(default=None, repr=False, compare=False)
    """Why its interpreter is not started, whole as it may be: this user may not reach it, or others may change it."""

    @property
    def waits_for_gpu(self) -> bool:
        """Whether its check was left to another machine, on whose GPU its build is to run."""
        return self.manifest is not None and self.manifest.check is None and self.manifest.build != "cpu"

    @property
    def starts(self) -> bool:
        """Whether there is an interpreter that runs in this environment, and it may be started."""
        return self.refused is None and self.fault is None

    @property
    def fault(self) -> str | None:
        """Why no interpreter can run in this environment, as a fragment; None when one can."""
        if not os.path.exists(self.python):  # noqa: PTH110 - pathlib's own raises
            return "its interpreter is gone"
        if not access.is_file(self.python):
            return "its interpreter is not a regular file"
        if self.managed and not _names_a_python(self.prefix / "pyvenv.cfg"):
            # Python would start as the one it was made from, with the packages of that one, or not at all.
            return "its `pyvenv.cfg` is gone or damaged"
        return None


class Pointer(Document):
    """`data/current.json`: the current generation, since when, and the one kept for a rollback."""

    generation: str
    since: str
    previous: str | None = None


def interpreter_of(prefix: Path) -> Path:
    """Return where an environment's interpreter lies; it is not checked to be there."""
    return prefix / "Scripts" / "python.exe" if sys.platform == "win32" else prefix / "bin" / "python"


def generation_folder(home: Home, generation: str) -> Path:
    """Return the folder of a generation."""
    return home.runtimes / generation


def read_pointer(home: Home, findings: Findings = UNHEARD) -> Pointer | None:
    """Return what `current.json` says; None when it is missing or damaged.

    Raises StateNewerError and StateError as `files.read_state` does.
    """
    value = files.read_state(home, home.current, findings)
    if value is None:
        return None
    generation, since, previous = value.get("generation"), value.get("since"), value.get("previous")
    if not (_is_id(generation) and isinstance(since, str) and (previous is None or _is_id(previous))):
        findings.damaged(home.current, "does not name a runtime")
        return None
    return Pointer(generation, since, previous)


def write_pointer(home: Home, pointer: Pointer) -> None:
    """Make `pointer.generation` current, atomically. The caller holds the mutex."""
    files.write_json(home.current, pointer.to_json(), within=home.root)


def read_manifest(home: Home, generation: str, findings: Findings = UNHEARD) -> Manifest | None:
    """Return a generation's manifest; None when it is missing or damaged, or when the generation's folder is a link."""
    folder = generation_folder(home, generation)
    if folder.is_symlink():
        # We make folders; what a link leads to is somebody else's.
        message = f"`{folder}` is a link, so it is not one of Imprint's runtimes"
        findings.add(Finding(folder, "state-damaged", message, helps("remove-link-then-setup")))
        return None
    path = folder / "manifest.json"
    value = files.read_state(home, path, findings)
    if value is None:
        return None
    manifest = _manifest_from_json(value)
    if manifest is None or manifest.id != generation:
        findings.damaged(path, "is not the manifest of this runtime")
        return None
    return manifest


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """Return the JSON form that `read_manifest` reads."""
    return {
        "schema": 1,
        "id": manifest.id,
        "build": manifest.build,
        "version": manifest.version,
        "locks": [{"name": name, "sha256": digest} for name, digest in manifest.locks.items()],
        "python": {"version": manifest.python, "executable": manifest.python_executable},
        "uv": manifest.uv,
        "created": manifest.created,
        "distributions": dict(manifest.distributions),
        "bytes": manifest.size,
        "check": None if manifest.check is None else dict(manifest.check),
    }


def current_target(home: Home, findings: Findings = UNHEARD) -> Target | None:
    """Return the managed target that is current, as recorded; None when there is none or its records are damaged.

    Nothing is proved by this: files may be missing and the interpreter may be gone. Raises StateNewerError and
    StateError as `files.read_state` does.
    """
    pointer = read_pointer(home, findings)
    if pointer is None:
        return None
    manifest = read_manifest(home, pointer.generation, findings)
    if manifest is None:
        return None
    return managed_target(home, manifest, pointer.since)


def managed_target(home: Home, manifest: Manifest, since: str | None = None) -> Target:
    """Return the generation that a manifest is of as a target, as recorded."""
    prefix = generation_folder(home, manifest.id)
    return Target(
        prefix=prefix,
        python=interpreter_of(prefix),
        managed=True,
        generation=manifest.id,
        build=manifest.build,
        version=manifest.version,
        since=since,
        manifest=manifest,
        refused=_refusal(home, prefix),
    )


def _refusal(home: Home, prefix: Path) -> ImprintError | None:
    """Return why the interpreter of a generation is not to be started, None when it may be, or is gone."""
    python = interpreter_of(prefix)
    for path in (python, prefix / "pyvenv.cfg", *prefix.glob("lib/python3*/site-packages")):
        if (error := ownership.unsafe(home, path)) is not None:
            return error
    try:
        python.stat()
        # A FIFO without a writer would block a plain open for ever.
        os.close(os.open(prefix / "pyvenv.cfg", os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)))
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        from imprint.causes.errors import blocked_error

        why, hint = access.explain(error, Path(error.filename or python), home.root)
        denied = ImprintError(f"cannot start `{python}`: {why}", hint=hint, code="folder-denied")
        return blocked_error(str(python)) or denied
    return None


def _names_a_python(config: Path) -> bool:
    """Whether Python can read an environment's `pyvenv.cfg` and finds there what it was made from."""
    try:
        status = config.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LONGEST_CONFIG:
            return False
        lines = config.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return False
    return any(line.partition("=")[0].strip().lower() == "home" for line in lines)


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _manifest_from_json(value: Mapping[str, Any]) -> Manifest | None:
    try:
        check = value["check"]
        manifest = Manifest(
            id=_text(value["id"]),
            build=_text(value["build"]),
            version=_text(value["version"]),
            locks={_text(lock["name"]): _text(lock["sha256"]) for lock in value["locks"]},
            python=_text(value["python"]["version"]),
            python_executable=_text(value["python"]["executable"]),
            uv=None if value["uv"] is None else _text(value["uv"]),
            created=_text(value["created"]),
            distributions={_text(name): _text(version) for name, version in value["distributions"].items()},
            size=value["bytes"] if isinstance(value["bytes"], int) else None,
            check=dict(check) if check is not None else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return manifest


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
