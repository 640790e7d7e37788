"""What our own locks and data say about distributions: which names any build ever used, and what a build requires."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from imprint import resources
from imprint.runtime.distributions.pins import read_lock
from imprint.runtime.distributions.unused import OLDER_NAMES


@dataclass(frozen=True, slots=True)
class Shipped:
    """`ever`: names of all locks of builds, today's and older; `elsewhere`: names of our other requirement files.

    `requires` maps `name==version` of a build of ONNX Runtime to its Requires-Dist lines. `brings` names the folders of
    a package and its scripts with what they start, where the name of the package does not tell.
    """

    ever: frozenset[str]
    elsewhere: frozenset[str]
    requires: dict[str, tuple[str, ...]]
    brings: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_shipped() -> Shipped:
    """Return what this Imprint ships. Raises IntegrityError when a lock is missing or malformed."""
    builds = json.loads(resources.data_path("builds.json").read_text("utf-8"))["builds"]
    locks = {release["lock"] for build in builds for release in build["releases"]}
    folder = resources.lock_path("cpu.txt").parent
    ever = {name for lock in sorted(locks) for name in _names(folder / lock)}
    others = {name for path in sorted(folder.glob("*.txt")) if path.name not in locks for name in _names(path)}
    wheels = json.loads(resources.data_path("requirements.json").read_text("utf-8"))
    requires, brings = ({key: tuple(lines) for key, lines in wheels[what].items()} for what in ("requires", "brings"))
    return Shipped(frozenset(ever) | OLDER_NAMES, frozenset(others), requires, brings)


def _names(path: Path) -> frozenset[str]:
    return frozenset(pin.name for pin in read_lock(path)) if path.exists() else frozenset()
