"""The wheels behind a lock: which one each machine takes, how large it is, and for which Pythons there are any.

Names and sizes come from uv's resolution of the lock. The addresses in it are dropped at once: nothing of ours
names one.
"""

from __future__ import annotations

import re
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename

from imprint_dev.claims import Lock, TargetPlatform
from imprint_dev.lockfile import parse_lockfile
from imprint_dev.uv import UvError, run_uv

_MANYLINUX = re.compile(r"(?P<arch>x86_64|aarch64)-manylinux_2_(?P<minor>\d+)")
_OLD_MANYLINUX = {5: "manylinux1", 12: "manylinux2010", 17: "manylinux2014"}


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel of a distribution; `size` in bytes."""

    distribution: str
    filename: str
    size: int
    tags: frozenset[Tag]


class WheelError(RuntimeError):
    """A lock and the index disagree, or a machine has no wheel; the message says which."""


def platform_tags(spot: TargetPlatform) -> list[str]:
    """Return the platform tags that the machine accepts, best first. Errors: WheelError for one not known here."""
    if match := _MANYLINUX.fullmatch(spot.triple):
        tags = []
        for minor in range(int(match["minor"]), 4, -1):
            tags.append(f"manylinux_2_{minor}_{match['arch']}")
            if minor in _OLD_MANYLINUX:
                tags.append(f"{_OLD_MANYLINUX[minor]}_{match['arch']}")
        return tags
    if spot.triple.endswith("-pc-windows-msvc"):
        return ["win_amd64" if spot.triple.startswith("x86_64") else "win_arm64"]
    if spot.triple.endswith("-apple-darwin") and spot.macos:
        major, minor = (int(part) for part in spot.macos.split("."))
        return list(mac_platforms((major, minor), "x86_64" if spot.triple.startswith("x86_64") else "arm64"))
    raise WheelError(f"no wheel tags are known for `{spot.triple}`")


def supported_tags(spot: TargetPlatform) -> Iterator[Tag]:
    """Yield what the standard CPython of the machine installs, best first."""
    major, minor = (int(part) for part in spot.python.split("."))
    interpreter = f"cp{major}{minor}"
    platforms = platform_tags(spot)
    yield from cpython_tags((major, minor), abis=[interpreter], platforms=platforms)
    yield from compatible_tags((major, minor), interpreter=interpreter, platforms=platforms)


def choose(wheels: Iterable[Wheel], spot: TargetPlatform) -> dict[str, Wheel]:
    """Return the wheel of each distribution that the machine takes. Errors: WheelError when it takes none of one."""
    ranks = {tag: rank for rank, tag in reversed(list(enumerate(supported_tags(spot))))}
    best: dict[str, tuple[int, Wheel]] = {}
    distributions = set()
    for wheel in wheels:
        distributions.add(wheel.distribution)
        rank = min((ranks[tag] for tag in wheel.tags if tag in ranks), default=None)
        if rank is not None and rank < best.get(wheel.distribution, (rank + 1, wheel))[0]:
            best[wheel.distribution] = (rank, wheel)
    if missing := sorted(distributions - best.keys()):
        raise WheelError(f"no wheel for {spot}: {', '.join(missing)}")
    return {name: wheel for name, (_rank, wheel) in best.items()}


def abis_on(wheels: Iterable[Wheel], spot: TargetPlatform, pythons: Iterable[str]) -> tuple[str, ...]:
    """Return the ABIs (`cp312`, `cp313t`) of these Pythons that the wheels serve on the spot's platform, in order."""
    platforms = set(platform_tags(spot))
    wanted = {f"cp{python.replace('.', '')}" for python in pythons}
    found = {
        tag.abi
        for wheel in wheels
        for tag in wheel.tags
        if tag.platform in platforms and tag.interpreter in wanted and tag.abi.removesuffix("t") == tag.interpreter
    }
    return tuple(sorted(found))


def floor_on(wheel: Wheel) -> str | None:
    """Return the oldest glibc (`2.28`) or macOS (`14`) that takes the wheel, None on Windows."""
    floors: list[tuple[int, ...]] = []
    for tag in wheel.tags:
        if match := re.fullmatch(r"manylinux_(\d+)_(\d+)_.*", tag.platform):
            floors.append((int(match[1]), int(match[2])))
        elif match := re.fullmatch(r"macosx_(\d+)_(\d+)_.*", tag.platform):
            floors.append((int(match[1]),))
    return ".".join(str(part) for part in min(floors)) if floors else None


def resolve(uv: str, lock: Lock, folder: Path, spot: TargetPlatform | None) -> list[Wheel]:
    """Return the wheels of a lock: those of the machine's resolution, or of all machines when `spot` is None.

    Errors: UvError; WheelError when the index has a file of a pinned version under another hash than the lock.
    """
    source = folder / f"{lock.name}.txt"
    known = {one for entry in parse_lockfile(source.read_text(encoding="utf-8")) for one in entry.hashes}
    arguments = ["pip", "compile", "--quiet", "--no-deps", "--format", "pylock.toml", "--no-header"]
    if spot is None:
        arguments += ["--universal", "--python-version", lock.python]
    else:
        arguments += ["--python-platform", spot.triple, "--python-version", spot.python]
    extra = {"MACOSX_DEPLOYMENT_TARGET": spot.macos} if spot and spot.macos else {}
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch, "pylock.toml")
        done = run_uv(uv, [*arguments, "--output-file", str(output), source.name], cwd=folder, extra=extra)
        if done.returncode != 0:
            raise UvError(f"{lock.name}.txt does not resolve:\n{done.stderr.strip()}")
        document = tomllib.loads(output.read_text(encoding="utf-8"))
    return [_wheel(package["name"], row, known) for package in document["packages"] for row in package["wheels"]]


def _wheel(distribution: str, row: dict[str, Any], known: set[str]) -> Wheel:
    filename = row.get("name") or row["url"].rsplit("/", 1)[-1]
    if f"sha256:{row['hashes']['sha256']}" not in known:
        raise WheelError(f"the lock does not know the hash of {filename}")
    return Wheel(distribution, filename, row["size"], parse_wheel_filename(filename)[3])
