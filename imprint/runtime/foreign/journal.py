"""What we keep about an environment of somebody else's: the journal of a change under way, and the receipt of the last.

Both lie under `data/inplace/`, in a folder named after the environment's path. A journal that is there when no run is
at work belongs to one that was interrupted.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imprint import touch
from imprint.errors import StateError
from imprint.paths import Home
from imprint.runtime.distributions.inventory import Inventory
from imprint.runtime.foreign.environment import identity_of
from imprint.state import files
from imprint.state.findings import UNHEARD, Findings
from imprint.values import SCHEMA, Record


class Journal(Record):
    """The intent of a change, written before it and removed after it.

    `uninstall` holds names, `install` versions by name, `files` the paths that any of them owns and `folders` those
    in which no rest of a build may be left, `kept` those files there that are the owner's, all relative to the folder
    of packages. `repair` tells that every hash was to be compared.
    """

    build: str
    version: str
    since: str
    uninstall: tuple[str, ...] = ()
    install: Mapping[str, str] = {}
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    repair: bool = False


class Receipt(Record):
    """What the last finished run left: the build, and the distributions that are there because of us."""

    build: str
    version: str
    lock: str
    since: str
    installed: Mapping[str, str] = {}


class Store(Record):
    """The folder of one environment, and what lies where in it."""

    prefix: Path
    folder: Path

    @property
    def root(self) -> Path:
        """The home that the folder lies in."""
        return self.folder.parents[2]

    @property
    def journal(self) -> Path:
        """The journal (JSON)."""
        return self.folder / "journal.json"

    @property
    def receipt(self) -> Path:
        """The receipt (JSON)."""
        return self.folder / "receipt.json"

    @property
    def proof(self) -> Path:
        """The newest check of what the environment holds (JSON)."""
        return self.folder / "proof.json"

    @property
    def refused(self) -> Path:
        """What the wheels of a refused change bring (JSON)."""
        return self.folder / "refused.json"


def store_of(home: Home, prefix: Path) -> Store:
    """Return where the records of the environment at `prefix` lie; links to one environment share its records."""
    real = os.path.realpath(prefix.expanduser())
    name = re.sub(r"[^\w.-]", "-", Path(real).name)[:40] or "environment"
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return Store(prefix, home.data / "inplace" / f"{name}-{digest}")


def read_journal(store: Store, findings: Findings = UNHEARD) -> Journal | None:
    """Return the journal of an interrupted run; None when there is none or it is of an earlier environment here."""
    value = _known(store, files.read_json(store.journal, within=store.root, findings=findings))
    if value is None:
        return None
    try:
        return Journal(
            build=str(value["build"]),
            version=str(value["version"]),
            since=str(value["since"]),
            uninstall=tuple(map(str, value["uninstall"])),
            install={str(name): str(version) for name, version in value["install"].items()},
            files=tuple(path for path in map(str, value["files"]) if _is_inside(path)),
            folders=tuple(path for path in map(str, value["folders"]) if _is_inside(path)),
            kept=tuple(path for path in map(str, value.get("kept", ())) if _is_inside(path)),
            repair=value.get("repair") is True,
        )
    except (KeyError, TypeError, AttributeError):
        findings.damaged(store.journal, "is not the journal of a change")
        return None


def is_unfinished(found: Journal | None, seen: Inventory) -> bool:
    """Whether an environment shows that a change of it was cut short.

    A journal alone does not: another home, or the owner, may have finished or undone the change since.
    """
    if found is None:
        return False
    builds = seen.runtime_distributions
    touched = [each for each in seen.distributions if each.is_build or each.name in found.install]
    return len(builds) != 1 or any(each.problems for each in touched)


def write_journal(store: Store, journal: Journal) -> None:
    """Record the intent so that it survives a power cut."""
    _write(store, store.journal, journal.to_json())


def read_receipt(store: Store, findings: Findings = UNHEARD) -> Receipt | None:
    """Return what the last finished run left; None when there is none or it is of an earlier environment here."""
    value = _known(store, files.read_note(store.receipt, within=store.root, findings=findings))
    if value is None:
        return None
    try:
        return Receipt(
            build=str(value["build"]),
            version=str(value["version"]),
            lock=str(value["lock"]),
            since=str(value["since"]),
            installed={str(name): str(version) for name, version in value["installed"].items()},
        )
    except (KeyError, TypeError, AttributeError):
        findings.damaged(store.receipt, "is not the receipt of a change")
        return None


def installed_by_us(home: Home) -> frozenset[str] | None:
    """Return the distributions that our runs installed in environments; None where a receipt cannot be read."""
    found: set[str] = set()
    try:
        for path in sorted((home.data / "inplace").glob("*/receipt.json")):
            prefix = (files.read_json(path, within=home.root) or {}).get("prefix")
            receipt = read_receipt(store_of(home, Path(prefix))) if isinstance(prefix, str) else None
            found.update(receipt.installed if receipt is not None else ())
    except StateError:
        return None
    return frozenset(found)


def write_receipt(store: Store, receipt: Receipt) -> None:
    """Record what a finished run left."""
    _write(store, store.receipt, receipt.to_json())


def read_proof(store: Store, findings: Findings = UNHEARD) -> dict[str, Any] | None:
    """Return what is kept of the newest check; None when there is none or it is of an earlier environment here."""
    return _known(store, files.read_note(store.proof, within=store.root, findings=findings))


def write_proof(store: Store, proof: Mapping[str, Any]) -> None:
    """Keep what a check found; it is only a convenience, so it may be lost in a power cut."""
    _write(store, store.proof, proof, durable=False)


def read_refused(store: Store) -> dict[str, Any] | None:
    """Return what the wheels of a refused change bring; None when there is none or it is of an earlier environment."""
    found = _known(store, files.read_note(store.refused, within=store.root))
    return found["wheels"] if found is not None and isinstance(found.get("wheels"), dict) else None


def write_refused(store: Store, wheels: Mapping[str, Any]) -> None:
    """Keep what the wheels of a refused change bring, by name and version."""
    _write(store, store.refused, {"wheels": wheels}, durable=False)


def finish(store: Store) -> None:
    """Remove the journal of a run that ended well, and what a refused one kept."""
    touch.remove_file(store.refused, within=store.folder)
    touch.remove_file(store.journal, within=store.folder)
    touch.sync_folder(store.folder)


def _write(store: Store, path: Path, record: Mapping[str, Any], *, durable: bool = True) -> None:
    """Keep a record with the environment that it is of."""
    of = {"schema": SCHEMA, "prefix": os.fspath(store.prefix), "identity": identity_of(store.prefix)}
    files.write_json(path, {**of, **record}, within=store.root, durable=durable)


def _known(store: Store, value: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a record that is of this environment, and not of an earlier one at the same place."""
    return value if value is not None and value.get("identity") == identity_of(store.prefix) else None


def _is_inside(path: str) -> bool:
    parts = Path(path).parts
    return bool(parts) and not Path(path).is_absolute() and ".." not in parts
