"""Reads the NVIDIA driver and its GPUs: files first, so that a machine without them costs no process; then libcuda.

libcuda is only ever loaded in a child (`nvidia_child.py`): it may hang, crash, or wake a sleeping GPU.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from imprint.planning.driver import hides_every_gpu
from imprint.planning.model import Nvidia, Platform
from imprint.probing.host import ChildResult, Host
from imprint.probing.libraries import find_library, without_stubs
from imprint.values import Record, replace
from imprint.words import NvidiaStatus

WSL_LIBRARIES = "/usr/lib/wsl/lib"

_OLD_NVML = "C:/Program Files/NVIDIA Corporation/NVSMI/nvml.dll"
"""Where drivers before R430 put NVML."""


_NVIDIA_VENDOR = "0x10de"
_DISPLAY_CLASS = "0x03"

_NODES = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvgpu", "/dev/nvhost-ctrl-gpu")

_TEGRA_CAPABILITIES = ("5.3", "6.2", "7.2", "8.7", "10.1", "11.0")
"""Nano, TX2, Xavier, Orin, Thor before and since CUDA 13 (developer.nvidia.com/cuda-gpus, 2026-11)."""

_CHILD = Path(__file__).with_name("nvidia_child.py")


class Traces(Record):
    """What files say about NVIDIA on a Linux machine, before any library is loaded.

    `gpus` counts the GPUs on the PCI bus that this system may drive, `lent` those bound to vfio for a virtual machine;
    `nodes` tells whether a device node is there; `library` is the libcuda that the loader would take.
    """

    gpus: int = 0
    lent: int = 0
    nodes: bool = False
    kernel_driver: str | None = None
    library: str | None = None


def survey_nvidia(host: Host, platform: Platform, *, deadlines: tuple[float, ...]) -> Nvidia:
    """Return what is known about NVIDIA here; see the machine document for the meaning of `status`.

    `deadlines` are the seconds of the first try and of each retry; only a try that used up its time is repeated.
    """
    if platform.os == "linux":
        traces = look_for_traces(host, platform)
        if traces.library is None:
            return without_library(traces, platform)
        names = {"cuda": ["libcuda.so.1"], "nvml": ["libnvidia-ml.so.1"]}
        if platform.wsl:
            # By name first: a Linux driver installed inside WSL shadows the right one, and that must be seen.
            names["cuda"].append(f"{WSL_LIBRARIES}/libcuda.so.1")
        return _ask_driver(host, platform, traces, names, deadlines)
    if platform.os == "windows":
        names = {"cuda": ["nvcuda.dll"], "nvml": ["nvml.dll", _OLD_NVML]}
        if host.exists(f"{host.environ.get('SystemRoot', 'C:/Windows')}/System32/nvcuda.dll"):
            return _ask_driver(host, platform, Traces(), names, deadlines)
        return Nvidia(status="none", gpus=())
    # macOS has had no driver since 10.14; of any other system nothing is known.
    return Nvidia(status="none", gpus=()) if platform.os == "macos" else Nvidia()


def _ask_driver(
    host: Host, platform: Platform, traces: Traces, names: dict[str, list[str]], deadlines: tuple[float, ...]
) -> Nvidia:
    from imprint.probing.nvidia_answer import Surroundings, read_answer

    visible = host.environ.get("CUDA_VISIBLE_DEVICES")
    around = Surroundings(
        kernel_driver=traces.kernel_driver,
        hardware=traces.gpus > 0 or traces.nodes,
        uvm=platform.os == "linux" and not platform.wsl,
        visible_devices=visible,
    )
    answer = read_answer(_ask(host, names, deadlines), around)
    if answer.status != "no-device" or visible is None or hides_every_gpu(visible):
        return answer
    # The driver says the same for "no such device" and "no device at all"; without the variable it tells.
    without = read_answer(_ask(host, names, deadlines, hide_visible=True), around)
    if without.status != "ok":
        return answer
    return replace(
        answer, status="bad-visible-devices", error=f"CUDA_VISIBLE_DEVICES={visible} selects none of the GPUs here"
    )


def _ask(
    host: Host, names: dict[str, list[str]], deadlines: tuple[float, ...], *, hide_visible: bool = False
) -> ChildResult:
    environ = dict(host.environ)
    if environ.get("LD_LIBRARY_PATH"):
        environ["LD_LIBRARY_PATH"] = without_stubs(environ["LD_LIBRARY_PATH"])
    if hide_visible:
        environ.pop("CUDA_VISIBLE_DEVICES", None)
    if "CUDA_VISIBLE_DEVICES" not in environ:
        # Never beside an index list: the same list would then choose other GPUs than in a process that runs here.
        environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    result = ChildResult(None, not_started="this process does not know its own interpreter")
    for deadline in deadlines if host.executable else ():
        request = json.dumps({**names, "seconds": int(deadline) + 5})
        result = host.run([host.executable, "-I", "-S", "-B", str(_CHILD), request], deadline=deadline, environ=environ)
        if not result.timed_out:
            break
    return result


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
    status: NvidiaStatus
    notice = None
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
        notice = f"{seen}, but no libcuda.so.1 on the loader's path"
    else:
        status = "none"
        if traces.lent:
            notice = f"{traces.lent} NVIDIA GPU(s) bound to vfio-pci, for a virtual machine"
    return Nvidia(status=status, kernel_driver=traces.kernel_driver, error=notice, gpus=())


def is_jetson(host: Host, platform: Platform, nvidia: Nvidia) -> bool | None:
    """Tell whether CUDA sees the integrated GPU of a Tegra chip; None when CUDA could not be asked.

    An integrated GPU alone is not enough: GB10 has one and runs the ordinary arm64 builds. A container may hide the
    files that name the chip, so the capabilities that only Tegra has count as well.
    """
    if nvidia.status in (None, "timeout", "error"):
        return None if platform.arch == "aarch64" else False
    integrated = [gpu for gpu in nvidia.gpus or () if gpu.integrated]
    if platform.arch != "aarch64" or not integrated:
        return False
    if any(gpu.compute_capability in _TEGRA_CAPABILITIES for gpu in integrated):
        return True
    family = (host.read_text("/sys/devices/soc0/family", 64) or "").strip()
    compatible = host.read_text("/proc/device-tree/compatible", 4096) or ""
    return family == "Tegra" or host.exists("/etc/nv_tegra_release") or "nvidia,tegra" in compatible
