"""The gates a build has to pass on a machine: a wheel for the platform, a driver, code for the GPU.

Each gate is a pure function of the facts. What it refuses carries the code and the fact; what it lets through is the
wheel, or the GPU and how the code runs there. The check's verdict, the last gate, belongs to `selection`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from imprint.planning import facts
from imprint.planning.builds import CPU, NATIVE, PTX, Build, Wheel
from imprint.planning.driver import Driver, Unread, floor, is_too_old
from imprint.planning.model import Gpu, Machine
from imprint.planning.reasons import Refused
from imprint.planning.versions import Pair, dotted, parse_pair, parse_python, parse_version, python_of_abi, standard_abi
from imprint.values import Record, replace
from imprint.words import How

OS, TEGRA, ARCH, LIBC, PYTHON, ABI = "os", "tegra", "arch", "libc", "python", "abi"
DRIVER, DEVICE, CHECK = "driver", "device", "check"
GATES = (OS, TEGRA, ARCH, LIBC, PYTHON, ABI, DRIVER, DEVICE, CHECK)
"""The gates in the order in which a GPU build meets them."""

LEVEL = {**dict.fromkeys((OS, TEGRA, ARCH, LIBC, PYTHON, ABI), 2), DRIVER: 3, DEVICE: 4, CHECK: 5}
"""How far each gate is along the way: the platform's gates are one step."""


class Fit(Record):
    """A build that runs on a GPU of this machine."""

    build: Build
    wheel: Wheel
    gpu: Gpu
    how: How


def fit_of(build: Build, machine: Machine, gpu_device: str, driver: Driver | Unread) -> Fit | Refused:
    """Return the GPU that a build would run on, or what refuses it: gates 2 to 4."""
    wheel = wheel_for(build, machine)
    if isinstance(wheel, Refused):
        return wheel
    if isinstance(driver, Unread):
        return Refused(build, DRIVER, driver.code, driver.seen)
    refused = _driver_gate(build, machine, driver)
    if refused is not None:
        return replace(refused, uncovered=_uncovered(wheel, machine, gpu_device))
    return _device_gate(build, wheel, machine, gpu_device, driver)


# --- gate 2: a wheel for the platform and the interpreter -----------------------------------------------------------


class Step(Record):
    """One gate of the platform: its name, its code, the fact it judges, and whether a wheel passes."""

    gate: str
    code: str
    seen: str
    passes: Callable[[Wheel], bool]


def wheel_for(build: Build, machine: Machine) -> Wheel | Refused:
    """Return the wheel of a build for this machine's platform and interpreter, or the first gate without one."""
    wheels = build.wheels
    for step in platform_steps(build, machine):
        left = tuple(wheel for wheel in wheels if step.passes(wheel))
        if not left:
            need = _oldest_libc(wheels) if step.code == "libc-too-old" else ""
            return Refused(build, step.gate, step.code, step.seen, need)
        wheels = left
    return wheels[0]


def platform_steps(build: Build, machine: Machine) -> Iterator[Step]:
    """Yield the steps of gate 2 in their order. The CPU build's codes are those of a machine without any build."""
    platform = machine.platform
    gpu = build.kind != CPU
    no_os = "os-no-gpu-build" if gpu else "os-no-wheel"
    where = facts.system_on_arch(machine)
    yield Step(OS, no_os, facts.system(machine), lambda wheel: wheel.os == platform.os)
    if gpu:
        yield Step(TEGRA, "jetson-vendor-build", _tegra_gpu(machine), lambda _: platform.jetson is not True)
    yield Step(ARCH, "arch-no-gpu-build" if gpu else "arch-no-wheel", where, lambda wheel: wheel.arch == platform.arch)
    # The floor of macOS differs by architecture, so it is judged after it; the code is that of the system.
    yield Step(OS, no_os, facts.system_version(machine), lambda wheel: _os_suffices(wheel, machine))
    yield Step(LIBC, "libc-musl", "", lambda wheel: not (wheel.libc and _libc_name(machine) == "musl"))
    # With a C library of another name it is another system, such as Android's.
    yield Step(LIBC, no_os, facts.system_with_libc(machine), lambda wheel: not (wheel.libc and _is_foreign(machine)))
    yield Step(LIBC, "libc-too-old", facts.libc(machine), lambda wheel: _libc_suffices(wheel, machine))
    version = parse_python(machine.python.version)
    no_python = "python-no-gpu-wheel" if gpu else "python-no-wheel"
    yield Step(PYTHON, no_python, facts.python(machine), lambda wheel: version in wheel.pythons)
    no_abi = "python-no-gpu-wheel" if gpu else "python-abi-no-wheel"
    yield Step(ABI, no_abi, facts.python(machine), lambda wheel: _abi(machine) in wheel.abis)


def _abi(machine: Machine) -> str | None:
    """Return the interpreter's ABI, its version's standard one when none is named; None when the two contradict."""
    version, abi = parse_python(machine.python.version), machine.python.abi
    if abi is None:
        return None if version is None else standard_abi(version)
    return abi if python_of_abi(abi) == version else None


def _libc_name(machine: Machine) -> str | None:
    libc = machine.platform.libc
    return libc.name if libc is not None else None


def _is_foreign(machine: Machine) -> bool:
    return _libc_name(machine) not in {None, "glibc", "musl"}


def _libc_suffices(wheel: Wheel, machine: Machine) -> bool:
    libc = machine.platform.libc
    if wheel.libc is None or libc is None or libc.name != "glibc":
        return True
    version = parse_version(libc.version)
    return version is None or version >= wheel.libc


def _os_suffices(wheel: Wheel, machine: Machine) -> bool:
    version = parse_version(machine.platform.os_version)
    return wheel.os_version is None or version is None or version >= wheel.os_version


def _oldest_libc(wheels: tuple[Wheel, ...]) -> str:
    return dotted(min(wheel.libc for wheel in wheels if wheel.libc is not None))


def _tegra_gpu(machine: Machine) -> str:
    gpus = sorted(machine.nvidia.gpus or (), key=preference)
    return next((facts.gpu_name(gpu) for gpu in gpus if gpu.integrated), "the GPU here")


# --- gates 3 and 4: the driver, and code for the GPU ----------------------------------------------------------------


def _driver_gate(build: Build, machine: Machine, driver: Driver) -> Refused | None:
    if not is_too_old(driver, build, machine):
        return None
    cuda = "CUDA" if build.toolkit is None else f"CUDA {build.toolkit[0]}"
    need = f"{cuda} needs driver {floor(build, machine)}"
    return Refused(build, DRIVER, "driver-too-old", facts.driver(machine), need)


def _uncovered(wheel: Wheel, machine: Machine, gpu_device: str) -> str:
    """Name the GPUs asked for when no driver would make the wheel run on any of them; empty where one might."""
    asked = selected(gpu_device, machine.nvidia.gpus or ())
    if isinstance(asked, str) or not asked:
        return ""
    known = [capability(gpu) for gpu in asked]
    if any(one is None or wheel.how_it_runs(one, (99, 0)) for one in known):
        return ""
    return facts.listed(list(dict.fromkeys(facts.gpu(gpu) for gpu in sorted(asked, key=preference))), "or")


def _device_gate(build: Build, wheel: Wheel, machine: Machine, gpu_device: str, driver: Driver) -> Fit | Refused:
    gpus = machine.nvidia.gpus or ()
    asked = selected(gpu_device, gpus)
    if isinstance(asked, str):
        here = ", ".join(_choice(gpu) for gpu in sorted(gpus, key=preference))
        return Refused(build, DEVICE, asked, facts.on_one_line(gpu_device), f"the GPUs here are {here}")
    for how in (NATIVE, PTX):
        covered = [gpu for gpu in asked if wheel.how_it_runs(capability(gpu), driver.cuda) == how]
        if covered:
            return Fit(build, wheel, min(covered, key=preference), how)
    return _no_code(build, wheel, asked, machine)


def _no_code(build: Build, wheel: Wheel, asked: tuple[Gpu, ...], machine: Machine) -> Refused:
    for gpu in sorted(asked, key=preference):
        known = capability(gpu)
        ptx = wheel.ptx_for(known) if known is not None else None
        if ptx is not None:
            need = f"a driver for CUDA {dotted(ptx.toolkit)} to compile the {build.title} build's code"
            seen = f"{facts.gpu(gpu)} with {facts.driver(machine)}"
            return Refused(build, DEVICE, "ptx-needs-newer-driver", seen, need)
    seen = facts.listed(list(dict.fromkeys(facts.gpu(gpu) for gpu in sorted(asked, key=preference))), "or")
    return Refused(build, DEVICE, "compute-capability-unsupported", seen)


def selected(gpu_device: str, gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...] | str:
    """Return the GPUs among which to choose for `model.gpu_device`, or the code that refuses it."""
    if gpu_device == "auto":
        return gpus
    if "," in gpu_device:
        return "gpu-list-unsupported"
    wanted = gpu_device.lower()
    for gpu in sorted(gpus, key=preference):
        by_index = gpu.index is not None and str(gpu.index) == gpu_device
        if by_index or (gpu.uuid is not None and gpu.uuid.lower() == wanted):
            return (gpu,)
    return "gpu-not-found"


def capability(gpu: Gpu) -> Pair | None:
    """Return a GPU's compute capability, None where it is unknown."""
    return parse_pair(gpu.compute_capability)


def preference(gpu: Gpu) -> tuple[bool, int, bool, int, str, str, str]:
    """Sort key, best first: discrete before integrated, more memory, the lower index; then whatever tells two apart."""
    return (
        gpu.integrated is True,
        -(gpu.memory_mib or 0),
        gpu.index is None,
        gpu.index or 0,
        gpu.uuid or "",
        gpu.name or "",
        gpu.compute_capability or "",
    )


def _choice(gpu: Gpu) -> str:
    index = "without an index" if gpu.index is None else str(gpu.index)
    return f"{index} ({facts.gpu_name(gpu)}{'' if gpu.uuid is None else f', {facts.on_one_line(gpu.uuid)}'})"
