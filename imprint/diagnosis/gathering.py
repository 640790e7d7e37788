"""Gathers the facts about a target and the places around it, each source on its own and within a time limit.

Nothing is changed. What needs configuration, plans or embedding is gathered by the operation.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imprint.access import owner_of
from imprint.causes.errors import blocked_error, outside_error
from imprint.diagnosis.facts import Damage, Disk, Interpreter, Nodes, Runtimes, Unused
from imprint.errors import ImprintError
from imprint.paths import Home
from imprint.planning.builds import BuildTable, Wheel
from imprint.planning.model import Machine
from imprint.probing.host import Host
from imprint.probing.interpreter import ask_interpreter, parse_python
from imprint.runtime.distributions import inventory
from imprint.runtime.distributions.inventory import Distribution, Inventory, RuntimePackage, is_runtime
from imprint.runtime.distributions.metadata import is_vendor, read_held
from imprint.runtime.installer import space
from imprint.runtime.target import Target, interpreter_of

_NODES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-caps/*", "dxg", "kfd", "dri/renderD*")
_LINKS_LOOKED_AT = 20


@dataclass(slots=True)
class Gathering:
    """Facts under way: what each source raised, by the name of the fact."""

    failures: dict[str, ImprintError] = field(default_factory=dict)

    def together(self, seconds: float, **sources: Callable[[], Any]) -> dict[str, Any]:
        """Ask sources at the same time and return what each gave within `seconds`; None for one that failed.

        One that is late goes on by itself and is not waited for; its failure has the code `timed-out`.
        """
        given: dict[str, Any] = {}

        def ask(name: str, source: Callable[[], Any]) -> None:
            try:
                given[name] = source()
            except ImprintError as error:
                self.failures[name] = error
            except Exception as error:
                unknown = ImprintError(f"{type(error).__name__}: {error}", code="bug")
                self.failures[name] = unknown
                with contextlib.suppress(OSError):  # the catalogue may be what cannot be opened
                    self.failures[name] = outside_error(error) or unknown

        threads = [
            threading.Thread(target=ask, args=(name, source), name=name, daemon=True)
            for name, source in sources.items()
        ]
        started = [thread for thread in threads if self._started(thread)]
        end = time.monotonic() + seconds
        for thread in started:
            # One limit for all of them: sources that hang do so together.
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                late = ImprintError(f"it did not finish within {seconds:.0f} seconds", code="timed-out")
                self.failures.setdefault(thread.name, late)
        return {name: given.get(name) if name not in self.failures else None for name in sources}

    def _started(self, thread: threading.Thread) -> bool:
        try:
            thread.start()
        except RuntimeError as error:
            self.failures[thread.name] = outside_error(error) or ImprintError(str(error), code="bug")
            return False
        return True


def environment_target(path: Path) -> Target:
    """Return the environment that somebody named. Raises ImprintError (`not-an-environment`) where there is none."""
    prefix = path.expanduser().absolute()
    found = Target(prefix=prefix, python=interpreter_of(prefix), managed=False)
    if os.path.isfile(prefix / "pyvenv.cfg") or os.path.lexists(found.python):  # noqa: PTH113 - a denied folder is no
        return found
    blocked = blocked_error(str(found.python))
    if blocked is not None:
        raise blocked
    what = "does not exist" if not prefix.exists() else "is not a Python environment"
    raise ImprintError(f"`{prefix}` {what}", code="not-an-environment")


def interpreter(target: Target, host: Host, seconds: float) -> Interpreter:
    """Return what the target's interpreter is, by asking it."""
    path = str(target.python)
    folders = [found.parent.name for found in sorted(target.prefix.glob("lib/python3*/site-packages"))]
    series = [found[1] for name in folders if (found := re.fullmatch(r"python(\d\.\d+t?)", name))]
    if target.fault is not None and os.path.exists(target.python):  # noqa: PTH110 - as above
        seen = f"{path} cannot run in its environment: {target.fault}"
        return Interpreter(path, present=True, error=seen, made_for=next(iter(series), None))
    try:
        version = parse_python(ask_interpreter(host, target.python, deadline=seconds)).version
    except ImprintError as error:
        present, code = error.specific_code != "interpreter-gone", error.specific_code
        made_for = next(iter(series), None)
        return Interpreter(path, present, error=error.message, made_for=made_for, code=code, hint=error.hint)
    own = ".".join((version or "").split(".")[:2])
    made_for = next((name for name in series if name.rstrip("t") == own), next(iter(series), None))
    return Interpreter(path, present=True, version=version, made_for=made_for)


def runtimes(target: Target, *, deep: bool) -> tuple[Runtimes, RuntimePackage | None]:
    """Return what is installed in the target, and what the files of ONNX Runtime say they are."""
    seen = inventory.inspect(target.prefix, deep=deep)
    return summarise(seen, hashed=deep), seen.runtime


def summarise(seen: Inventory, *, hashed: bool) -> Runtimes:
    """Return what the checks need of an inventory: problems counted by distribution and kind, hollow builds named."""
    builds = seen.runtime_distributions
    return Runtimes(
        builds=tuple(f"{build.name} {build.version or ''}".rstrip() for build in builds),
        distributions=len(seen.distributions),
        damages=_damages(seen),
        hashed=hashed,
        packages=str(seen.packages) if seen.packages is not None else None,
        versions=seen.versions,
        requirers=_requirers(seen) if len(builds) > 1 else (),
        write_error=_write_error(seen.packages),
        size=sum(found.size for found in seen.distributions),
        leftovers=_leftovers(seen.packages) if seen.packages is not None else (),
        gpu_size=sum(found.size for found in seen.distributions if _is_for_gpus(found)),
        free=space.free_at(seen.packages) if seen.packages is not None else None,
    )


def _is_for_gpus(found: Distribution) -> bool:
    return is_vendor(found.name) or (found.is_build and found.name == "onnxruntime-gpu")


def _leftovers(packages: Path) -> tuple[tuple[str, int], ...]:
    """Return what pip renamed while it replaced a package, and did not come to remove."""
    folders = sorted(path for path in packages.glob("~*") if path.is_dir() and not path.is_symlink())
    return tuple((str(path), sum(found.st_size for found in inventory.tree_files(path))) for path in folders)


def kinds(prefix: Path) -> tuple[str, ...]:
    """Return the traits of an environment's kind: virtual, conda, or neither for an installation of Python."""
    found = []
    if (prefix / "pyvenv.cfg").is_file():
        found.append("virtual")
    elif (prefix / "conda-meta").is_dir():
        found.append("conda")
    if any(prefix.glob("lib/python3*/EXTERNALLY-MANAGED")):
        found.append("externally-managed")
    return tuple(found)


def _damages(seen: Inventory) -> tuple[Damage, ...]:
    grouped: dict[tuple[str, str], list[str | None]] = {}
    for problem in seen.problems:
        grouped.setdefault((problem.distribution, problem.kind), []).append(problem.path)
    damages = [_damage(seen.packages, name, kind, paths) for (name, kind), paths in grouped.items()]
    unfinished = {damage.distribution for damage in damages if damage.kind == "no-installer"}
    hollow = {
        build.name
        for build in seen.runtime_distributions
        if seen.runtime in {None, RuntimePackage()} and build.name not in unfinished
    }
    whole = [damage for damage in damages if damage.distribution not in hollow or damage.kind == "dangling"]
    return (*whole, *(Damage(name, "hollow") for name in sorted(hollow - {damage.distribution for damage in whole})))


def _damage(packages: Path | None, name: str, kind: str, paths: list[str | None]) -> Damage:
    if kind == "missing" and packages is not None:
        looked = [packages / path for path in paths[:_LINKS_LOOKED_AT] if path is not None]
        if looked and all(path.is_symlink() for path in looked):
            kind = "dangling"
    return Damage(name, kind, len(paths), paths[0])


def _requirers(seen: Inventory) -> tuple[str, ...]:
    """Return who asks for which build of ONNX Runtime, extras left out."""
    names = []
    for held in read_held(seen):
        for line in held.requires:
            wanted = re.match(r"[A-Za-z0-9._-]+", line)
            if wanted and "extra ==" not in line and is_runtime(inventory.normalize(wanted[0])):
                names.append(f"{held.name} ({inventory.normalize(wanted[0])})")
    return tuple(dict.fromkeys(names))


def _write_error(packages: Path | None) -> str | None:
    if packages is None or os.access(packages, os.W_OK | os.X_OK):
        return None
    why = "permission denied"
    if sys.platform != "win32" and os.statvfs(packages).f_flag & os.ST_RDONLY:
        why = "read-only file system"
    return f"{packages} cannot be written ({why})"


def wheel_of(name: str | None, version: str | None, machine: Machine | None, builds: BuildTable) -> Wheel | None:
    """Return the entry of our table for an installed build on this platform, None where it has none."""
    build = builds.find(name) if name is not None else None
    if build is None or machine is None:
        return None
    place = (machine.platform.os, machine.platform.arch, version)
    return next((wheel for wheel in build.wheels if (wheel.os, wheel.arch, wheel.version) == place), None)


def nodes() -> Nodes:
    """Return the device nodes of GPUs, and those that this process may not open. Nothing is opened."""
    root = Path("/dev")
    present = [str(path) for pattern in _NODES for path in sorted(root.glob(pattern))]
    return Nodes(tuple(present), tuple(path for path in present if not os.access(path, os.R_OK | os.W_OK)))


def blocked(home: Home) -> Path | None:
    """Return what this user cannot write where Imprint keeps its files, the first of a few that tell; None when it can.

    After one run with `sudo` the folder itself is ours, and what was made in it is not.
    """
    place = _nearest(home.root)
    if place != home.root:
        return None if os.access(place, os.W_OK | os.X_OK) else place
    folders = [home.root, home.data, home.runtimes, *_inside(home.runtimes), home.models, home.cache, home.tool]
    for folder in folders:
        if os.path.lexists(folder) and not os.access(folder, os.W_OK | os.X_OK):
            return folder
    files = (home.config, home.mutex, *_inside(home.data))
    return next((path for path in files if os.path.lexists(path) and not os.access(path, os.R_OK | os.W_OK)), None)


def told_of(place: Path | None) -> str | None:
    """Return what to say of a place that cannot be written."""
    if place is None:
        return None
    return f"`{place}` cannot be written" + (f"; it belongs to {owner_of(place.lstat())}" if is_foreign(place) else "")


def is_foreign(place: Path | None) -> bool:
    """Whether a place belongs to another user."""
    try:
        return place is not None and hasattr(os, "geteuid") and place.lstat().st_uid != os.geteuid()
    except OSError:
        return False


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def disk(home: Home, needed: int | None) -> Disk | None:
    """Return the free space where the home lies or will lie."""
    place = _nearest(home.root)
    free = space.free_at(place)
    return Disk(free, needed, str(place)) if free is not None else None


def unused(home: Home) -> Unused:
    """Return the bytes in the home that pruning would free. Walks the old generations and the cache."""
    # Only this one of many checks needs what reads locks.
    from imprint.runtime import prune
    from imprint.runtime.distributions.shipped import read_shipped

    found = prune.freeable(home, known=read_shipped().ever)
    return Unused(found.generations, found.cache, str(home.cache), found.kept)


def copies(home: Home) -> bool:
    """Return whether the cache and the runtimes lie on different file systems."""
    return _nearest(home.cache).stat().st_dev != _nearest(home.runtimes).stat().st_dev


def _nearest(path: Path) -> Path:
    while not os.path.exists(path) and path != path.parent:  # noqa: PTH110 - pathlib's own raises
        path = path.parent
    return path
