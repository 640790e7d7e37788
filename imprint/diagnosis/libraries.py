"""Which CUDA libraries a build asks for, and which package supplies each. Pure.

Source: what the wheels link and load by name, read 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from imprint.diagnosis.facts import Loaded
from imprint.planning.builds import Wheel
from imprint.runtime.check.libraries import supplier_of

DRIVER_LIBRARIES = frozenset({"libcuda.so.1", "nvcuda.dll"})
"""What the driver supplies, and no package does."""

_LINKED: dict[int, tuple[str, ...]] = {
    11: ("cublasLt.so.11", "cublas.so.11", "cudart.so.11.0", "curand.so.10", "cufft.so.10", "cudnn.so.8"),
    12: ("cublasLt.so.12", "cublas.so.12", "cudart.so.12", "curand.so.10", "cufft.so.11", "cudnn.so.9"),
    13: ("cublasLt.so.13", "cublas.so.13", "cudart.so.13", "curand.so.10"),
}
"""What the CUDA provider of a build links on Linux, by CUDA major, for builds that our table does not hold."""

_ON_DEMAND: dict[int, tuple[str, ...]] = {13: ("cudnn.so.9",)}

_STEM = re.compile(r"(?:lib)?(?P<stem>[A-Za-z][A-Za-z_]*?)(?:_[a-z_]+)?(?:\.so(?:\.(?P<so>\d+))?|(?:64)?_(?P<dll>\d+))")


def cuda_major(loaded: Loaded | None, wheel: Wheel | None) -> int | None:
    """Return the CUDA major version of the build, from what it says of itself, else from what it links."""
    if loaded is not None and loaded.cuda and loaded.cuda.split(".")[0].isdecimal():
        return int(loaded.cuda.split(".")[0])
    names = [*(wheel.links if wheel is not None else ())]
    if loaded is not None and loaded.missing:
        names.append(loaded.missing)
    return next(
        (
            number
            for name in names
            if family(name) in {"cublas", "cublasLt", "cudart"} and (number := number_of(name)) is not None
        ),
        None,
    )


def wanted_libraries(wheel: Wheel | None, major: int | None, system: str | None) -> list[tuple[str, bool]]:
    """Return the libraries a GPU build needs, each with whether nothing works without it; the driver's left out."""
    if wheel is not None and wheel.links:
        linked: Sequence[str] = wheel.links
    elif system == "linux":
        linked = [f"lib{name}" for name in _LINKED.get(major or 0, ())]
    else:
        linked = ()
    demanded = [f"lib{name}" for name in _ON_DEMAND.get(major or 0, ())] if system == "linux" else []
    return [
        *((name, True) for name in linked if name not in DRIVER_LIBRARIES),
        *((name, False) for name in demanded if name not in linked),
    ]


def family(name: str) -> str | None:
    """Return what a library is part of, whatever the system: `libcudnn_ops.so.9` and `cudnn64_9.dll` are cudnn."""
    found = _STEM.match(name.rsplit("/", 1)[-1])
    return found["stem"] if found else None


def number_of(name: str) -> int | None:
    """Return the number in a library's name: 13 for `libcublas.so.13` and `cublas64_13.dll`."""
    found = _STEM.match(name.rsplit("/", 1)[-1])
    number = (found["so"] or found["dll"]) if found else None
    return int(number) if number else None


def package_of(name: str, major: int | None) -> str | None:
    """Return the package that holds a library for a CUDA version, None where no package does."""
    supplier = supplier_of(name, f"{major}.0" if major is not None else None)
    return supplier.wheel if supplier is not None else None
