"""Reads the NVIDIA driver and its GPUs: files first, so that a machine without them costs no process; then libcuda.

libcuda is only ever loaded in a child (`nvidia_child.py`): it may hang, crash, or wake a sleeping GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from imprint.planning.model import Nvidia, Platform
from imprint.probing.host import Host
from imprint.probing.libraries import find_library

DEADLINES_SECONDS = (10.0, 30.0)
"""The child's time, and that of the one retry after it was used up: a first start of the driver can be slow."""

WSL_LIBRARIES = "/usr/lib/wsl/lib"

_NVIDIA_VENDOR = "0x10de"
_DISPLAY_CLASS = "0x03"

_NODES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvgpu", "/dev/nvhost-ctrl-gpu")

_CHILD = Path(__file__).with_name("nvidia_child.py")


@dataclass(frozen=True, slots=True)
class Traces:
    """What files say about NVIDIA on a Linux machine, before any library is loaded.

    `gpus` counts the GPUs on the PCI bus that this system may drive, `lent` those bound to vfio for a virtual machine;
    `nodes` tells whether a device node is there; `library` is the libcuda that the loader would take.
    """

    gpus: int = 0
    lent: int = 0
    nodes: bool = False
    kernel_driver: str | None = None
    library: str | None = None


def survey_nvidia(host: Host, platform: Platform, *, deadlines: tuple[float, ...] = DEADLINES_SECONDS) -> Nvidia:
    """Return what is known about NVIDIA here; see the machine document for the meaning of `status`."""
    if platform.os == "macos":
        return Nvidia(status="none", gpus=())
    if platform.os == "linux":
        traces = look_for_traces(host, platform)
        if traces.library is None:
            return without_library(traces, platform)
    del deadlines
    return Nvidia()


def look_for_traces(host: Host, platform: Platform) -> Traces:
    """Read the PCI bus, the device nodes, the kernel module's version and the loader's folders; start nothing."""
    gpus = lent = 0
    root = "/sys/bus/pci/devices"
    for name in host.list_dir(root) or ():
        if (host.read_text(f"{root}/{name}/vendor", 64) or "").strip() != _NVIDIA_VENDOR:
            continue
        if not (host.read_text(f"{root}/{name}/class", 64) or "").startswith(_DISPLAY_CLASS):
            continue
        if (host.resolve(f"{root}/{name}/driver") or "").endswith("/vfio-pci"):
            lent += 1
        else:
            gpus += 1
    extra = (WSL_LIBRARIES,) if platform.wsl else ()
    return Traces(
        gpus,
        lent,
        any(host.exists(path) for path in _NODES),
        parse_kernel_driver(
            host.read_text("/proc/driver/nvidia/version"), host.read_text("/sys/module/nvidia/version", 64)
        ),
        find_library(host, "libcuda.so.1", platform.arch, extra),
    )


def parse_kernel_driver(proc: str | None, module: str | None) -> str | None:
    """Return the version that /proc/driver/nvidia/version or /sys/module/nvidia/version names."""
    found = re.search(r"NVRM version:.*?\s(\d+(?:\.\d+)+)\s", (proc or "") + " ") or re.match(
        r"\s*(\d+(?:\.\d+)+)", module or ""
    )
    return found[1] if found else None


def without_library(traces: Traces, platform: Platform) -> Nvidia:
    """Return the answer for a Linux machine on which the loader finds no libcuda."""
    remark = None
    # In a container /proc shows the host's module; without a GPU passed in that is no driver missing here.
    module = traces.kernel_driver is not None and not platform.container
    if traces.gpus or traces.nodes or module:
        status = "driver-missing"
        seen = (
            f"{traces.gpus} NVIDIA GPU(s) on the PCI bus"
            if traces.gpus
            else "NVIDIA device nodes in /dev"
            if traces.nodes
            else f"the NVIDIA kernel module {traces.kernel_driver}"
        )
        remark = f"{seen}, but no libcuda.so.1 on the loader's path"
    else:
        status = "none"
        if traces.lent:
            remark = f"{traces.lent} NVIDIA GPU(s) bound to vfio-pci, for a virtual machine"
    return Nvidia(status=status, kernel_driver=traces.kernel_driver, error=remark, gpus=())
