"""Judges what a library's entries amount to: the capabilities it can be relied on for, and its CUDA libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from imprint_dev.fatbin import Code

_LEAST_CONTAINERS = 0.25
_LEAST_SIZE = 0.10
"""A target counts when it is in a quarter of the containers and has a tenth of the code of the fullest of its kind.

Templates are compiled for all targets or for few, so no target is in every container. Among the nine wheels read on
2026-11-29 the targets that a build was made for are in 36 % of the containers or more, and have 37 % of the code or
more. The others are the empty stubs for 9.0a in 1.31.1 for Windows (48 % of the containers, 0.1 % of the code), and
there the PTX for the few kernels that have no code for 12.0a (6 % of the containers).
"""

# PTX ISA version -> the CUDA release that introduced it, and so the oldest driver CUDA that compiles it.
# Source: NVIDIA, PTX ISA, release notes, table of PTX release history; read 2026-11-29.
_CUDA_OF_ISA = {
    "8.0": "12.0",
    "8.1": "12.1",
    "8.2": "12.2",
    "8.3": "12.3",
    "8.4": "12.4",
    "8.5": "12.5",
    "8.6": "12.7",
    "8.7": "12.8",
    "8.8": "12.9",
    "9.0": "13.0",
    "9.1": "13.1",
    "9.2": "13.2",
}

_CUDA_LIBRARY = re.compile(
    r"(lib)?(cublas|cublasLt|cuda|cudart|cudnn|cufft|curand|nvcuda|nvrtc|nvJitLink)[0-9_]*(\..*)?"
)
TARGET = re.compile(r"\bsm_(\d+)(a?)\b")
"""A target as NVIDIA's tools write it: `sm_90a`."""

DRIVER_LIBRARIES = frozenset({"libcuda.so.1", "nvcuda.dll"})
"""What comes with the driver and never from a wheel."""


class CoverageError(ValueError):
    """PTX of a language version that the table here does not know yet."""


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a library one target has: in how many containers it is, and how many bytes of code it has."""

    containers: int
    size: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """`native` capabilities like `9.0a` and `ptx` as (capability, oldest driver CUDA) that can be relied on.

    `too_little` are the targets left out, with their share; `shares` has all. Keys are (kind, capability).
    """

    native: tuple[str, ...]
    ptx: tuple[tuple[str, str], ...]
    shares: dict[tuple[str, str], Share]
    too_little: dict[tuple[str, str], Share]


def judge(code: Iterable[Code]) -> Coverage:
    """Return what these entries can be relied on for. Errors: CoverageError."""
    containers: dict[tuple[str, str], set[int]] = {}
    sizes: dict[tuple[str, str], int] = {}
    isa: dict[str, str] = {}
    everything = set()
    for one in code:
        key = (one.kind, one.capability)
        everything.add(one.container)
        containers.setdefault(key, set()).add(one.container)
        sizes[key] = sizes.get(key, 0) + one.size
        if one.isa is not None:
            isa[one.capability] = max(isa.get(one.capability, one.isa), one.isa, key=_number)
    shares = {key: Share(len(found), sizes[key]) for key, found in containers.items()}
    fullest = {kind: max(share.size for key, share in shares.items() if key[0] == kind) for kind, _ in shares}
    too_little = {
        key: share
        for key, share in shares.items()
        if share.containers < _LEAST_CONTAINERS * len(everything) or share.size < _LEAST_SIZE * fullest[key[0]]
    }
    kept = sorted(shares.keys() - too_little.keys(), key=lambda key: _number(key[1]))
    return Coverage(
        native=tuple(capability for kind, capability in kept if kind == "native"),
        # PTX for an `a` target runs on that capability alone, which has native code or a build made for it.
        ptx=tuple((name, _cuda_of(isa[name])) for kind, name in kept if kind == "ptx" and not name.endswith("a")),
        shares=shares,
        too_little=too_little,
    )


def cuda_libraries(names: Iterable[str]) -> tuple[str, ...]:
    """Return those libraries that are CUDA's, sorted: what a lock has to supply, and the driver's."""
    return tuple(sorted({name for name in names if _CUDA_LIBRARY.fullmatch(name)}))


def _cuda_of(isa: str) -> str:
    if isa not in _CUDA_OF_ISA:
        raise CoverageError(f"PTX language {isa} is newer than the table; add the CUDA release that introduced it")
    return _CUDA_OF_ISA[isa]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removesuffix("a").split("."))
