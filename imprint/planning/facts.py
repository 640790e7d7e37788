"""Names a fact the way it appears in a reason: short, on one line, and never more certain than what was seen."""

from __future__ import annotations

from collections.abc import Sequence

from imprint.planning.model import Gpu, Machine, OtherGpu
from imprint.planning.versions import Pair, dotted

SYSTEMS = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}
"""How the operating systems that have builds are written."""

_LONGEST = 200


def on_one_line(text: str) -> str:
    """Return text from outside without control characters or line breaks, cut where it is very long."""
    words = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return words if len(words) <= _LONGEST else words[:_LONGEST] + "…"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Join words as in a sentence: `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def system(machine: Machine) -> str:
    """Name the operating system."""
    name = machine.platform.os
    return "an unknown operating system" if name is None else SYSTEMS.get(name, on_one_line(name))


def system_on_arch(machine: Machine) -> str:
    """Name the operating system and the architecture."""
    arch = machine.platform.arch
    return f"{system(machine)} on {'an unknown architecture' if arch is None else on_one_line(arch)}"


def system_version(machine: Machine) -> str:
    """Name the operating system with its version, and the architecture."""
    version = machine.platform.os_version
    named = system(machine) if version is None else f"{system(machine)} {on_one_line(version)}"
    return f"{named} on {on_one_line(machine.platform.arch or 'an unknown architecture')}"


def libc(machine: Machine) -> str:
    """Name the C library with its version."""
    seen = machine.platform.libc
    if seen is None:
        return "an unknown C library"
    return f"{on_one_line(seen.name or 'glibc')} {on_one_line(seen.version or 'of unknown version')}"


def system_with_libc(machine: Machine) -> str:
    """Name the operating system with its C library."""
    seen = machine.platform.libc
    name = None if seen is None else seen.name
    return system(machine) if name is None else f"{system(machine)} with {on_one_line(name)}"


def is_free_threaded(machine: Machine) -> bool:
    """Whether a machine's Python is a free-threaded one, by its ABI or by the `t` of its version."""
    return any((name or "").endswith("t") for name in (machine.python.abi, machine.python.version))


def python(machine: Machine) -> str:
    """Name the interpreter, with its ABI where that is not the version's standard one."""
    version, abi = machine.python.version, machine.python.abi
    if version is None:
        return "an unknown Python"
    shown = f"Python {on_one_line(version)}"
    if abi is None:
        return shown
    return f"{shown} ({on_one_line(abi)}{', free-threaded' if abi.endswith('t') else ''})"


def gpu(seen: Gpu) -> str:
    """Name an NVIDIA GPU with its compute capability."""
    capability = seen.compute_capability
    known = f"compute capability {on_one_line(capability)}" if capability else "compute capability unknown"
    return f"{gpu_name(seen)} ({known})"


def gpu_name(seen: Gpu) -> str:
    """Name an NVIDIA GPU."""
    if seen.name:
        return on_one_line(seen.name)
    return "an unnamed GPU" if seen.index is None else f"GPU {seen.index}"


def other_gpu(seen: OtherGpu) -> str:
    """Name a GPU that is not NVIDIA's, and say so where it is software."""
    name = on_one_line(seen.name or seen.vendor or "an unnamed GPU")
    return f"{name}, a software renderer," if seen.kind == "software" else name


def driver(machine: Machine) -> str:
    """Name the driver and its CUDA version, as far as each was seen."""
    version, cuda = machine.nvidia.driver, machine.nvidia.cuda
    if version is None:
        return f"an NVIDIA driver for CUDA {on_one_line(cuda or '')}"
    shown = f"driver {on_one_line(version)}"
    return shown if cuda is None else f"{shown} (CUDA {on_one_line(cuda)})"


def driver_supports(machine: Machine, cuda: Pair | None) -> str:
    """Say which CUDA version the driver supports, where that is known."""
    version = machine.nvidia.driver
    shown = "the NVIDIA driver" if version is None else f"driver {on_one_line(version)}"
    return f"{shown} supports CUDA {dotted(cuda)}" if cuda is not None else f"{shown} is new enough"
