"""Reads our locks as values: which version of what each pins, under which marker, and the lines that say so.

Writing some of the entries of a lock to a file of their own gives a smaller lock with the same pins and hashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement

from imprint.errors import IntegrityError
from imprint.runtime.distributions.inventory import is_runtime, normalize

_OPTION = re.compile(r"\s*--hash=\S+")


@dataclass(frozen=True, slots=True)
class Pin:
    """One entry of a lock; `text` is the entry as the lock writes it, hashes included."""

    name: str
    version: str
    marker: str | None
    text: str


def parse_lock(text: str, where: str = "the lock") -> tuple[Pin, ...]:
    """Return every entry of a hashed requirement file. Raises IntegrityError for one without a pin or a hash."""
    pins = []
    for entry in _entries(text):
        stated = _OPTION.sub("", entry.replace("\\\n", " ")).strip()
        try:
            requirement = Requirement(stated)
        except InvalidRequirement as error:
            raise IntegrityError(f"`{where}` contains a line that is not a requirement: {stated[:80]}") from error
        versions = [spec.version for spec in requirement.specifier if spec.operator == "=="]
        if len(versions) != 1 or "--hash=" not in entry:
            raise IntegrityError(f"`{where}` does not pin `{requirement.name}` to one version with hashes")
        marker = str(requirement.marker) if requirement.marker else None
        pins.append(Pin(normalize(requirement.name), versions[0], marker, entry))
    return tuple(pins)


def read_lock(path: Path) -> tuple[Pin, ...]:
    """Return the entries of the lock at `path`. Raises IntegrityError when it is missing or malformed."""
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise IntegrityError(f"the lock `{path.name}` cannot be read: {error}") from error
    return parse_lock(text, path.name)


def applying(pins: Sequence[Pin], environment: Mapping[str, str]) -> tuple[Pin, ...]:
    """Return the entries whose marker holds in a target with this marker environment."""
    return tuple(pin for pin in pins if _holds(pin, environment))


def pins_of(locks: Iterable[Path]) -> dict[str, str]:
    """Return what locks pin for the interpreter that runs this: versions by normalized name. Raises IntegrityError."""
    here = {key: str(value) for key, value in default_environment().items()}
    return {pin.name: pin.version for lock in locks for pin in applying(read_lock(lock), here)}


def runtime_pin(pins: Sequence[Pin]) -> Pin | None:
    """Return the entry that is a build of ONNX Runtime, None when there is none."""
    return next((pin for pin in pins if is_runtime(pin.name)), None)


def render_lock(pins: Sequence[Pin]) -> str:
    """Return the text of a requirement file with these entries."""
    return "".join(f"{pin.text.rstrip()}\n" for pin in pins)


def marker_environment(version: str, *, implementation: str = "cpython", machine: str | None = None) -> dict[str, str]:
    """Return the environment in which markers are judged for a Python `version` (as `3.12.4`) on this machine."""
    values = {key: str(value) for key, value in default_environment().items()}
    values |= {
        "python_full_version": version,
        "python_version": ".".join(version.split(".")[:2]),
        "implementation_version": version,
        "implementation_name": implementation,
        "platform_python_implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(implementation, implementation),
        "extra": "",
    }
    if machine is not None:
        values["platform_machine"] = machine
    return values


def _holds(pin: Pin, environment: Mapping[str, str]) -> bool:
    if pin.marker is None:
        return True
    marker = Requirement(f"x ; {pin.marker}").marker
    return marker is None or marker.evaluate(dict(environment))


def _entries(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("#") or not line.strip():
            continue
        lines.append(line.rstrip())
        if not line.rstrip().endswith("\\"):
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)
