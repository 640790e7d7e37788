"""What the NVIDIA driver of a machine amounts to: its version and CUDA, or the code for why neither can be used."""

from __future__ import annotations

from collections.abc import Callable

from imprint import envvars
from imprint.planning import facts
from imprint.planning.builds import Build, BuildTable
from imprint.planning.model import Machine, OtherGpu
from imprint.planning.versions import Pair, Version, parse_cuda, parse_version
from imprint.values import Record

ALWAYS = "always"
IF_INSTALLED = "if-installed"

_HIDES_ALL = frozenset({"", "-1", "NoDevFiles"})
"""Values of CUDA_VISIBLE_DEVICES that leave no GPU: the first two are CUDA's, the last one of container runtimes."""

WSL_LIBRARIES = "/usr/lib/wsl/"
"""Where WSL keeps the libraries of its own driver."""


class Driver(Record):
    """A driver that answered: `version` or `cuda` may be None where it is unknown, not both."""

    version: Version | None
    cuda: Pair | None


class Unread(Record):
    """A driver that cannot be planned with.

    `provisional` says when this makes a plan provisional: `always`, or `if-installed` when a GPU build is installed.
    """

    code: str
    seen: str
    provisional: str


def hides_every_gpu(visible: str) -> bool:
    """Whether a value of CUDA_VISIBLE_DEVICES leaves no GPU; CUDA reads past the spaces around it."""
    return visible.strip() in _HIDES_ALL


def read_driver(machine: Machine, table: BuildTable) -> Driver | Unread:
    """Return the driver, or why it cannot be used. A missing CUDA version is taken from the driver's branch."""
    nvidia = machine.nvidia
    status = nvidia.status
    if status == "ok" and not nvidia.gpus:
        status = "no-device"
    if status != "ok":
        return _unread(status, machine)
    version, cuda = parse_version(nvidia.driver), parse_cuda(nvidia.cuda)
    if version is None and cuda is None:
        return Unread("driver-unreadable", "neither its version nor its CUDA version is known", ALWAYS)
    if cuda is None and version is not None:
        cuda = table.cuda_of_driver(version)
    return Driver(version, cuda)


def uses_windows_driver(machine: Machine) -> bool:
    """Whether the driver is the one of Windows, as it is inside WSL too."""
    return machine.platform.os == "windows" or machine.platform.wsl is True


def floor(build: Build, machine: Machine) -> str | None:
    """Return the oldest driver a build runs with on this machine, None where it needs none."""
    return build.driver_floors.get("windows" if uses_windows_driver(machine) else "linux")


def is_too_old(driver: Driver, build: Build, machine: Machine) -> bool:
    """Whether the driver is below the build's floor or of an older CUDA major. CUDA minors are never compared."""
    least = parse_version(floor(build, machine))
    if driver.version is not None and least is not None and driver.version < least:
        return True
    return driver.cuda is not None and build.toolkit is not None and driver.cuda[0] < build.toolkit[0]


def is_hardware(gpu: OtherGpu, machine: Machine) -> bool:
    """Whether a GPU counts: a software renderer does only when this run's environment allows that for tests."""
    return gpu.kind != "software" or machine.environment.get(envvars.ALLOW_SOFTWARE_GPU) == "1"


def _unread(status: str | None, machine: Machine) -> Unread:
    read = _STATUSES.get(status or "")
    return read(machine) if read is not None else _unreadable(machine)


def _driver_missing(machine: Machine) -> Unread:
    return Unread("container-no-gpu" if _in_container(machine) else "driver-missing", "", IF_INSTALLED)


def _bad_visible_devices(machine: Machine) -> Unread:
    value = machine.environment.get("CUDA_VISIBLE_DEVICES")
    seen = "" if value is None else f'="{facts.on_one_line(value)}"'
    return Unread("visible-devices-invalid", seen, IF_INSTALLED)


def _driver_mismatch(machine: Machine) -> Unread:
    libraries, kernel = machine.nvidia.driver, machine.nvidia.kernel_driver
    if libraries is None or kernel is None:
        return Unread("driver-mismatch", "", ALWAYS)
    return Unread("driver-mismatch", f" ({facts.on_one_line(libraries)} and {facts.on_one_line(kernel)})", ALWAYS)


def _compat_unsupported(machine: Machine) -> Unread:
    path = machine.nvidia.libcuda
    return Unread("compat-unsupported", "" if path is None else f" ({facts.on_one_line(path)})", ALWAYS)


def _uvm_unavailable(_machine: Machine) -> Unread:
    return Unread("uvm-unavailable", "", ALWAYS)


def _unreadable(machine: Machine) -> Unread:
    status, error = machine.nvidia.status, machine.nvidia.error
    known = {"timeout": "it did not answer in time", "error": "it answered with an error", None: "it was not checked"}
    seen = known.get(status, "its status is unknown to this version")
    said = "" if error is None else f": {facts.on_one_line(error)}"
    return Unread("driver-unreadable", f"{seen}{said}", ALWAYS)


def _none_seen(machine: Machine) -> Unread:
    if _in_container(machine) and machine.nvidia.kernel_driver is not None:
        return Unread("container-no-gpu", "", IF_INSTALLED)
    for gpu in machine.other_gpus or ():
        if is_hardware(gpu, machine) and (gpu.vendor or "").lower() != "nvidia":
            return Unread("vendor-not-nvidia", facts.other_gpu(gpu), IF_INSTALLED)
    return Unread("no-nvidia-gpu", "", IF_INSTALLED)


def _no_device(machine: Machine) -> Unread:
    visible = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and hides_every_gpu(visible):
        return Unread("visible-devices-empty", visible, IF_INSTALLED)
    libcuda = machine.nvidia.libcuda
    if machine.platform.wsl is True and libcuda is not None and not libcuda.startswith(WSL_LIBRARIES):
        return Unread("wsl-linux-driver", facts.on_one_line(libcuda), IF_INSTALLED)
    return Unread("container-no-gpu" if _in_container(machine) else "no-device", "", IF_INSTALLED)


def _in_container(machine: Machine) -> bool:
    return machine.platform.container is True


_STATUSES: dict[str, Callable[[Machine], Unread]] = {
    "none": _none_seen,
    "driver-missing": _driver_missing,
    "no-device": _no_device,
    "bad-visible-devices": _bad_visible_devices,
    "driver-mismatch": _driver_mismatch,
    "compat-unsupported": _compat_unsupported,
    "uvm-unavailable": _uvm_unavailable,
}
"""What each status amounts to; timeout, error, null and whatever is not known are a driver that cannot be read."""
