"""The build for GPUs of every vendor: when it is planned where no CUDA build fits."""

from __future__ import annotations

from imprint.planning import facts, reasons
from imprint.planning.builds import BuildTable
from imprint.planning.driver import is_hardware
from imprint.planning.gates import wheel_for
from imprint.planning.model import Device, Machine, OtherGpu, Plan, Request
from imprint.planning.reasons import Refused

_APIS = frozenset({"vulkan", "d3d12", "metal"})


def portable_plan(request: Request, machine: Machine, builds: BuildTable) -> Plan | None:
    """Return the plan for a GPU of any vendor, or None where there is none, or nobody wants it.

    `gpu` wants it, `auto` only when a kept measurement shows it faster and in agreement. An explicit NVIDIA GPU is
    honoured or refused, never replaced by another one.
    """
    build = builds.portable
    if build is None or not request.portable_gpu or request.gpu_device != "auto":
        return None
    if request.device == "auto" and not request.portable_is_faster:
        return None
    wheel = wheel_for(build, machine)
    usable = [gpu for gpu in machine.other_gpus or () if gpu.api in _APIS and is_hardware(gpu, machine)]
    if isinstance(wheel, Refused) or not usable:
        return None
    gpu = min(usable, key=_preference)
    why = reasons.portable(facts.other_gpu(gpu), build, gpu.api or "")
    return Plan(build.name, wheel.lock, wheel.version, Device(None, None, gpu.name), "gpu-portable", why)


def _preference(gpu: OtherGpu) -> tuple[bool, int, str, str, str]:
    return gpu.kind != "discrete", -(gpu.memory_mib or 0), gpu.name or "", gpu.vendor or "", gpu.api or ""
