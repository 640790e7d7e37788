"""The builds of ONNX Runtime that exist, as data: where each has wheels, which GPUs its code runs on, what it needs.

`data/builds.json` is derived from the wheels; this module only turns it into values. The caller reads the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from imprint.planning.versions import (
    Pair,
    Version,
    parse_cuda,
    parse_pair,
    parse_version,
    python_of_abi,
)
from imprint.values import Record
from imprint.words import BuildKind, How

CPU: Final = "cpu"
CUDA: Final = "cuda"
PORTABLE: Final = "portable"

NATIVE: Final = "native"
PTX: Final = "ptx"


class Native(Record):
    """Machine code for one compute capability; `exact` (an `a` target) runs on that capability alone."""

    capability: Pair
    exact: bool

    def runs_on(self, capability: Pair) -> bool:
        """Whether it runs as it is on a GPU of this compute capability."""
        if self.exact:
            return self.capability == capability
        return self.capability[0] == capability[0] and self.capability[1] <= capability[1]


class Ptx(Record):
    """Intermediate code that a driver compiles for `capability` and later, if its CUDA is at least `toolkit`."""

    capability: Pair
    toolkit: Pair


class Wheel(Record):
    """One build on one platform: what has to be there for its wheels, and what is in them.

    `libc` and `os_version` are floors, None where there is none. `lock` names a file in locks/, `lock_digest` is that
    file's digest, None when the file is not there. Sizes are bytes of the whole lock, None where unknown.
    """

    version: str
    lock: str
    lock_digest: str | None
    os: str
    arch: str
    libc: Version | None
    os_version: Version | None
    abis: tuple[str, ...]
    native: tuple[Native, ...]
    ptx: tuple[Ptx, ...]
    links: tuple[str, ...]
    download_bytes: int | None
    installed_bytes: int | None

    @property
    def pythons(self) -> frozenset[Pair]:
        """The Python versions that have a wheel, with any ABI."""
        return frozenset(python for abi in self.abis if (python := python_of_abi(abi)) is not None)

    def how_it_runs(self, capability: Pair | None, cuda: Pair | None) -> How | None:
        """Return `native`, `ptx` or None, for a GPU of this compute capability under a driver of this CUDA version.

        Native code for X.Y runs on X.Z with Z >= Y, that of an `a` target on exactly its capability; PTX as `ptx_for`
        has it. An unknown capability is not covered; an unknown CUDA version compiles no PTX. Source: NVIDIA's CUDA
        programming guide, on binary and PTX compatibility.
        """
        if capability is None:
            return None
        if any(native.runs_on(capability) for native in self.native):
            return NATIVE
        ptx = self.ptx_for(capability)
        return PTX if ptx is not None and cuda is not None and cuda >= ptx.toolkit else None

    def ptx_for(self, capability: Pair) -> Ptx | None:
        """Return the PTX that could be compiled for this capability and asks least of the driver, None without any."""
        usable = [ptx for ptx in self.ptx if ptx.capability <= capability]
        return min(usable, key=lambda ptx: (ptx.toolkit, ptx.capability), default=None)


class Build(Record):
    """A variant of ONNX Runtime. `driver_floors` maps linux and windows to drivers."""

    name: str
    title: str
    kind: BuildKind
    toolkit: Pair | None
    driver_floors: Mapping[str, str]
    wheels: tuple[Wheel, ...]


class BuildTable(Record):
    """Every build in the order in which they are tried, and the facts about drivers that no wheel holds.

    `cuda_of_branch` is ascending. A GPU below capability `last_below` has no driver after the branch `last_branch`.
    `check_id` names the check whose verdicts count.
    """

    builds: tuple[Build, ...]
    cuda_of_branch: tuple[tuple[int, Pair], ...]
    hint_drivers: Mapping[str, tuple[str, ...]]
    last_below: Pair
    last_branch: str
    check_id: str

    @property
    def cpu(self) -> Build:
        """The build every machine falls back to."""
        return next(build for build in self.builds if build.kind == CPU)

    @property
    def cuda(self) -> tuple[Build, ...]:
        """The builds for NVIDIA GPUs, in the order in which they are tried."""
        return tuple(build for build in self.builds if build.kind == CUDA)

    @property
    def portable(self) -> Build | None:
        """The build for GPUs of every vendor, None while the table has none."""
        return next((build for build in self.builds if build.kind == PORTABLE), None)

    def find(self, name: str | None) -> Build | None:
        """Return the build of this name, None when there is none."""
        return next((build for build in self.builds if build.name == name), None)

    def cuda_of_driver(self, driver: Version) -> Pair | None:
        """Return the CUDA version of the greatest known branch that is not newer than the driver."""
        found = None
        for branch, cuda in self.cuda_of_branch:
            if branch <= driver[0]:
                found = cuda
        return found


def parse_builds(obj: Mapping[str, Any], lock_digests: Mapping[str, str], check_id: str) -> BuildTable:
    """Return the table that `data/builds.json` holds.

    `lock_digests` maps names in locks/ to digests; a lock that is missing there is one that cannot be installed yet.
    The file is ours and tested, so a malformed one raises whatever Python raises (KeyError, ValueError, TypeError).
    """
    last = obj["last_branch"]
    branches = sorted((int(branch), _pair(cuda)) for branch, cuda in obj["cuda_of_branch"].items())
    return BuildTable(
        builds=tuple(_build(entry, lock_digests) for entry in obj["builds"]),
        cuda_of_branch=tuple(branches),
        hint_drivers={system: tuple(drivers) for system, drivers in obj["hint_drivers"].items()},
        last_below=_pair(last["below"]),
        last_branch=last["branch"],
        check_id=check_id,
    )


def parse_native(text: str) -> Native:
    """Return the target that `8.6` or `9.0a` names. Errors: ValueError."""
    return Native(_pair(text.removesuffix("a")), text.endswith("a"))


def _build(entry: Mapping[str, Any], digests: Mapping[str, str]) -> Build:
    return Build(
        name=entry["name"],
        title=entry["title"],
        kind=entry["kind"],
        toolkit=parse_cuda(entry["toolkit"]),
        driver_floors=dict(entry["driver_floors"]),
        wheels=tuple(
            _wheel(release, platform, digests) for release in entry["releases"] for platform in release["platforms"]
        ),
    )


def _wheel(release: Mapping[str, Any], platform: Mapping[str, Any], digests: Mapping[str, str]) -> Wheel:
    return Wheel(
        version=release["version"],
        lock=release["lock"],
        lock_digest=digests.get(release["lock"]),
        os=platform["os"],
        arch=platform["arch"],
        libc=parse_version(platform["libc"]),
        os_version=parse_version(platform["os_version"]),
        abis=tuple(platform["abis"]),
        native=tuple(parse_native(text) for text in platform["native"]),
        ptx=tuple(Ptx(_pair(entry["capability"]), _pair(entry["toolkit"])) for entry in platform["ptx"]),
        links=tuple(platform["links"]),
        download_bytes=platform["download_bytes"],
        installed_bytes=platform["installed_bytes"],
    )


def _pair(text: str) -> Pair:
    pair = parse_pair(text)
    if pair is None:
        raise ValueError(f"not MAJOR.MINOR: {text!r}")
    return pair
