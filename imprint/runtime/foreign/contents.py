"""What wheels bring into an environment, as far as that is known before they are there.

Our data names the folders and the scripts of what the locks pin. A change that was refused for what lies in the
environment keeps the whole list of what it had unpacked, so that from then on everybody knows as much as it did.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imprint.runtime.distributions.claims import Ground, folders_of
from imprint.runtime.distributions.metadata import InstalledDistribution
from imprint.runtime.distributions.records import read_text
from imprint.runtime.foreign import journal
from imprint.runtime.foreign.journal import Store

if TYPE_CHECKING:
    from imprint.runtime.distributions.pins import Pin

Calls = tuple[tuple[str, str], ...]
"""What a script starts: modules, and a function of each."""

_CALLED = re.compile(r"^from (\S+) import (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Brought:
    """What a wheel is known to bring: some of its files, or all of them, and what its scripts start, by their paths.

    A file of which nothing but the path is known has no digest ("").
    """

    found: InstalledDistribution
    scripts: Mapping[str, Calls] = field(default_factory=dict)


def calls_of(script: Path) -> Calls:
    """Return what an installer's script starts; empty for any other."""
    return tuple(_CALLED.findall(read_text(script, 16_384) or ""))


def known(
    pins: Iterable[Pin], brings: Mapping[str, Sequence[str]], store: Store, ground: Ground
) -> tuple[Brought, ...]:
    """Return what is known of the wheels of `pins`; `brings` are the folders and scripts of those in our data."""
    seen = journal.read_refused(store) or {}
    found = []
    for pin in pins:
        try:
            found.append(_from_json(pin, seen[f"{pin.name}=={pin.version}"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            found.append(_from_data(pin, brings.get(pin.name), ground))
    return tuple(found)


def keep(store: Store, staged: Iterable[tuple[InstalledDistribution, Path]], ground: Ground) -> None:
    """Keep what was unpacked for a change that is refused."""
    journal.write_refused(
        store, {f"{found.name}=={found.version}": _to_json(found, packages, ground) for found, packages in staged}
    )


def _to_json(found: InstalledDistribution, packages: Path, ground: Ground) -> dict[str, Any]:
    scripts = [path for path in found.files if ground.is_script(ground.place(os.path.normpath(path)) or "")]
    return {
        "folder": found.folder.name if found.folder is not None else None,
        "files": dict(found.files),
        "scripts": {path: calls_of(Path(os.path.normpath(packages / path))) for path in scripts},
    }


def _from_json(pin: Pin, seen: Mapping[str, Any]) -> Brought:
    files = {str(path): str(digest) for path, digest in seen["files"].items()}
    scripts = {
        path: tuple((str(module), str(name)) for module, name in calls) for path, calls in seen["scripts"].items()
    }
    folder = Path(seen["folder"]) if seen["folder"] is not None else None
    return Brought(InstalledDistribution(pin.name, pin.version, files=files, folder=folder), scripts)


def _from_data(pin: Pin, brings: Sequence[str] | None, ground: Ground) -> Brought:
    files: dict[str, str] = {}
    scripts: dict[str, Calls] = {}
    for line in brings or folders_of(pin.name) or (pin.name.replace("-", "_"),):
        name, _, called = line.partition(" = ")
        if not called:
            files[f"{name}/__init__.py"] = ""
        elif sys.platform != "win32":
            # There a script is a program, which does not show what it starts.
            path = os.path.relpath(ground.scripts / name, ground.packages)
            files[path] = ""
            module, _, function = called.partition(":")
            scripts[path] = ((module, function),)
    return Brought(InstalledDistribution(pin.name, pin.version, files=files), scripts)
