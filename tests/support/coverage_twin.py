"""Which build runs on which GPU, written a second time from the raw table and the prose of the rule.

Shares no code with `imprint.planning`, so that an error there is not repeated here. Slow and plain on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JSON = Mapping[str, Any]


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]


def runs_as_it_is(native: list[str], capability: str) -> bool:
    """Machine code for X.Y runs on X.Y and on later minors; with an `a`, on X.Y alone."""
    major, minor = _numbers(capability)
    for target in native:
        own_major, own_minor = _numbers(target.rstrip("a"))
        if target.endswith("a"):
            if (own_major, own_minor) == (major, minor):
                return True
        elif own_major == major and own_minor <= minor:
            return True
    return False


def runs_through_ptx(ptx: list[JSON], capability: str, cuda: str | None) -> bool:
    """PTX for X.Y is compiled for everything from X.Y on, by a driver at least as new as the toolkit that made it."""
    if cuda is None:
        return False
    return any(
        _numbers(one["capability"]) <= _numbers(capability) and _numbers(one["toolkit"]) <= _numbers(cuda)
        for one in ptx
    )


def cuda_of(document: JSON, driver: str | None, cuda: str | None) -> str | None:
    """Return the CUDA version as reported, else that of the driver's branch."""
    if cuda is not None or driver is None:
        return cuda
    branches = [int(branch) for branch in document["cuda_of_branch"] if int(branch) <= _numbers(driver)[0]]
    return document["cuda_of_branch"][str(max(branches))] if branches else None


def driver_suffices(build: JSON, driver: str | None, cuda: str | None, *, windows: bool) -> bool:
    """At the floor of the system whose driver it is, and not of an older CUDA major."""
    least = build["driver_floors"]["windows" if windows else "linux"]
    if driver is not None and _numbers(driver) < _numbers(least):
        return False
    return cuda is None or _numbers(cuda)[0] >= _numbers(build["toolkit"])[0]


def platform_of(build: JSON, machine: JSON) -> Any:  # noqa: ANN401 - an entry of a JSON document, or None
    """Return the entry of the table for a machine, None when a build has no wheel for it."""
    platform, python = machine["platform"], machine["python"]
    if platform.get("jetson") is True or python.get("version") is None:
        return None
    libc = platform.get("libc") or {}
    major, minor = _numbers(".".join(python["version"].split(".")[:2]))
    abi = python.get("abi") or f"cp{major}{minor}"
    if abi.removesuffix("t") != f"cp{major}{minor}":
        return None
    for release in build["releases"]:
        for entry in release["platforms"]:
            if (entry["os"], entry["arch"]) != (platform.get("os"), platform.get("arch")) or abi not in entry["abis"]:
                continue
            if entry["libc"] is not None:
                if libc.get("name") not in {None, "glibc"}:
                    continue
                known = libc.get("name") == "glibc" and libc.get("version") is not None
                if known and _numbers(libc["version"]) < _numbers(entry["libc"]):
                    continue
            return entry
    return None


def how(document: JSON, name: str, machine: JSON, gpu: JSON) -> str | None:
    """`native`, `ptx` or None: how a build runs on one GPU of a machine document, recorded checks apart."""
    build = next(one for one in document["builds"] if one["name"] == name)
    entry, nvidia, capability = platform_of(build, machine), machine["nvidia"], gpu.get("compute_capability")
    windows = machine["platform"].get("os") == "windows" or machine["platform"].get("wsl") is True
    driver, reported = nvidia.get("driver"), nvidia.get("cuda")
    cuda = cuda_of(document, driver, reported)
    readable = nvidia.get("status") == "ok" and (driver is not None or reported is not None)
    if entry is None or not readable or not driver_suffices(build, driver, cuda, windows=windows) or capability is None:
        return None
    if runs_as_it_is(entry["native"], capability):
        return "native"
    return "ptx" if runs_through_ptx(entry["ptx"], capability, cuda) else None
