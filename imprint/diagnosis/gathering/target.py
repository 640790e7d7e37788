"""Gathers what the target is: the environment, its interpreter, and what is installed in it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from imprint.causes.errors import blocked_error
from imprint.diagnosis.facts import Damage, Interpreter, Runtimes, TargetFacts
from imprint.diagnosis.gathering.sources import Look
from imprint.errors import ImprintError
from imprint.probing.host import Host
from imprint.probing.interpreter import ask_interpreter, parse_python
from imprint.runtime.distributions import inventory
from imprint.runtime.distributions.inventory import Distribution, Inventory, RuntimePackage, is_runtime
from imprint.runtime.distributions.metadata import is_vendor, read_held
from imprint.runtime.foreign import journal
from imprint.runtime.installer import space
from imprint.runtime.target import Target, current_target, interpreter_of
from imprint.state import mutex

START_SECONDS = 10.0
"""For the target's interpreter to say what it is. It is asked once, whoever wants to know."""

INVENTORY_SECONDS = 50.0
DEEP_SECONDS = 900.0
"""For hashing every file: 2 GB of a GPU set from a slow disk."""

_LINKS_LOOKED_AT = 20
_READ_BY_INSTALLERS = (
    "METADATA",
    "RECORD",
    "INSTALLER",
    "REQUESTED",
    "direct_url.json",
    "uv_cache.json",
    "top_level.txt",
)


def target_facts(look: Look, target: Target | None) -> Callable[[], TargetFacts]:
    """Look at the target and what is installed in it; only one that may be started is looked into."""
    foreign = target if target is not None and not target.managed else None
    refused = target.refused if target is not None else None
    entered = target if refused is None else None
    store = journal.store_of(look.context.home, foreign.prefix) if foreign is not None else None
    seconds = DEEP_SECONDS if look.deep else INVENTORY_SECONDS
    ask = look.sources.ask
    answered = ask("interpreter", (lambda: interpreter(entered, look.host)) if entered else None, seconds)
    installed = ask("runtimes", (lambda: runtimes(entered.prefix, deep=look.deep)) if entered else None, seconds)
    kinds = ask("kinds", (lambda: kinds_of(foreign.prefix)) if foreign else None)
    receipt = ask("receipt", (lambda: journal.read_receipt(store, look.findings)) if store else None)
    interrupted = ask("interrupted", (lambda: _is_interrupted(foreign.prefix, look)) if foreign else None)
    busy = ask("busy", lambda: _busy(look))

    def facts() -> TargetFacts:
        return TargetFacts(
            venv=str(target.prefix if target is not None else look.venv) if look.venv is not None else None,
            kinds=kinds() or (),
            ours=look.venv is None or receipt() is not None,
            provisioned=None if "target" in look.sources.failures else target is not None,
            interpreter=answered(),
            runtimes=installed(),
            refused=refused,
            interrupted=bool(interrupted()),
            busy=busy(),
        )

    return facts


def target_of(look: Look) -> Target | None:
    """Return the managed target, or the environment that somebody named.

    Raises ImprintError (`not-an-environment`) where there is none.
    """
    if look.venv is None:
        return current_target(look.context.home, look.findings)
    prefix = look.venv.expanduser().absolute()
    found = Target(prefix=prefix, python=interpreter_of(prefix), managed=False)
    if os.path.isfile(prefix / "pyvenv.cfg") or os.path.lexists(found.python):  # noqa: PTH113 - a denied folder is no
        return found
    blocked = blocked_error(str(found.python))
    if blocked is not None:
        raise blocked
    what = "does not exist" if not prefix.exists() else "is not a Python environment"
    raise ImprintError(f"`{prefix}` {what}", code="not-an-environment")


def _is_interrupted(prefix: Path, look: Look) -> bool:
    """Whether a change of somebody's own environment did not end."""
    found = journal.read_journal(journal.store_of(look.context.home, prefix), look.findings)
    return journal.is_unfinished(found, inventory.inspect(prefix))


def _busy(look: Look) -> str | None:
    holder = mutex.holder(look.context.home)
    return holder.describe() if holder is not None else None


def interpreter(target: Target, host: Host) -> Interpreter:
    """Return what the target's interpreter is, by asking it."""
    path = str(target.python)
    folders = [found.parent.name for found in sorted(target.prefix.glob("lib/python3*/site-packages"))]
    series = [found[1] for name in folders if (found := re.fullmatch(r"python(\d\.\d+t?)", name))]
    if target.fault is not None and os.path.exists(target.python):  # noqa: PTH110 - as above
        seen = f"{path} cannot run in its environment: {target.fault}"
        return Interpreter(path, present=True, error=seen, made_for=next(iter(series), None))
    try:
        version = parse_python(ask_interpreter(host, target.python, deadline=START_SECONDS)).version
    except ImprintError as error:
        present, code = error.specific_code != "interpreter-gone", error.specific_code
        made_for = next(iter(series), None)
        return Interpreter(path, present, error=error.message, made_for=made_for, code=code, hint=error.hint)
    own = ".".join((version or "").split(".")[:2])
    made_for = next((name for name in series if name.rstrip("t") == own), next(iter(series), None))
    return Interpreter(path, present=True, version=version, made_for=made_for)


def runtimes(prefix: Path, *, deep: bool) -> Runtimes:
    """Return what is installed there, and what the files of ONNX Runtime say they are."""
    return summarise(inventory.inspect(prefix, deep=deep), hashed=deep)


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
        package=seen.runtime or RuntimePackage(),
    )


def _is_for_gpus(found: Distribution) -> bool:
    return is_vendor(found.name) or (found.is_build and found.name == "onnxruntime-gpu")


def _leftovers(packages: Path) -> tuple[tuple[str, int], ...]:
    """Return what pip renamed while it replaced a package, and did not come to remove."""
    folders = sorted(path for path in packages.glob("~*") if path.is_dir() and not path.is_symlink())
    return tuple((str(path), sum(found.st_size for found in inventory.tree_files(path))) for path in folders)


def kinds_of(prefix: Path) -> tuple[str, ...]:
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
    damages = [_damage(seen, name, kind, paths) for (name, kind), paths in grouped.items()]
    unfinished = {damage.distribution for damage in damages if damage.kind == "no-installer"}
    hollow = {
        build.name
        for build in seen.runtime_distributions
        if seen.runtime in {None, RuntimePackage()} and build.name not in unfinished
    }
    whole = [damage for damage in damages if damage.distribution not in hollow or damage.kind == "dangling"]
    return (*whole, *(Damage(name, "hollow") for name in sorted(hollow - {damage.distribution for damage in whole})))


def _blocking(seen: Inventory, name: str) -> tuple[str, ...]:
    """Return what lies in a distribution's metadata and is no regular file, where an installer expects one."""
    folders = [found.folder for found in seen.distributions if found.name == name]
    paths = [str(folder / file) for folder in folders for file in _READ_BY_INSTALLERS]
    return tuple(path for path in paths if os.path.exists(path) and not os.path.isfile(path))  # noqa: PTH110, PTH113


def _damage(seen: Inventory, name: str, kind: str, paths: list[str | None]) -> Damage:
    if kind == "missing" and seen.packages is not None:
        looked = [seen.packages / path for path in paths[:_LINKS_LOOKED_AT] if path is not None]
        if looked and all(path.is_symlink() for path in looked):
            kind = "dangling"
    return Damage(name, kind, len(paths), paths[0], _blocking(seen, name))


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
