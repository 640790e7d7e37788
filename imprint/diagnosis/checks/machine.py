"""The processor, the NVIDIA driver with its device nodes, and what hides a GPU from this process. Pure."""

from __future__ import annotations

from imprint import envvars
from imprint.causes.circumstances import planning_words
from imprint.diagnosis.checking import MACHINE, NODES, check, missing
from imprint.diagnosis.facts import Facts, Nodes
from imprint.diagnosis.findings import ERROR, OK, WARNING, Observation, ok, skipped
from imprint.diagnosis.standing import gpu_wanted
from imprint.planning.driver import hides_every_gpu
from imprint.planning.model import Machine
from imprint.sizes import in_units
from imprint.words import FindingStatus

_SICK = {
    "driver-mismatch": "driver-mismatch-reboot",
    "compat-unsupported": "forward-compat-on-geforce",
    "uvm-unavailable": "uvm-unavailable",
    "timeout": "driver-unreadable",
    "error": "driver-unreadable",
}
"""States of a driver that is there and does not work, by the machine document's word: told whatever was asked."""

_OLD = frozenset({"driver-too-old", "ptx-needs-newer-driver"})


@check("machine:processor", "the processor's instructions", MACHINE)
def processor(_: Facts, machine: Machine) -> Observation:
    """Judge the processor's instruction sets."""
    cpu, arch = machine.cpu, machine.platform.arch
    name = cpu.name or "the processor"
    if arch != "x86_64":
        return ok(f"{name} ({arch or 'architecture unknown'})")
    if cpu.flags is None:
        return skipped(f"{name} does not report its instructions here")
    if "avx2" not in cpu.flags:
        return Observation("cpu-no-avx2", WARNING, f"{name} has no AVX2")
    best = next((flag for flag in ("avx512_vnni", "avx_vnni", "avx512f") if flag in cpu.flags), "avx2")
    return ok(f"{name} has {best}")


@check("gpu:driver", "the NVIDIA driver and the GPUs it shows", MACHINE)
def driver(facts: Facts, machine: Machine) -> Observation:
    """Judge what the NVIDIA driver answered."""
    code, seen = _state(facts, machine)
    status: FindingStatus = OK
    if code in _SICK.values() or code == "wsl-linux-driver-installed":
        status = ERROR if facts.settings.insists_on_gpu else WARNING
    elif code != "ok" and gpu_wanted(facts):
        status = WARNING
    # A hint about something else than the driver is told by the check that sums up.
    plan = facts.planned.plan
    hint = plan.hint if plan is not None and plan.code in _OLD else None
    return Observation(code, status, seen, words={**planning_words(machine), "hint": hint})


def _state(facts: Facts, machine: Machine) -> tuple[str, str]:
    nvidia, plan = machine.nvidia, facts.planned.plan
    if nvidia.status in _SICK:
        return _SICK[nvidia.status], _sick(facts.system.nodes, machine)
    if nvidia.status in {"no-device", "bad-visible-devices"}:
        return _hidden(facts.system.nodes, machine)
    if nvidia.status in {"driver-missing", "none"}:
        return _absent(facts, machine)
    if nvidia.status is None:
        return "ok", "it is not known whether this system has an NVIDIA driver"
    if plan is not None and plan.code in _OLD:
        return "driver-too-old", plan.reason
    names = ", ".join(gpu.name or "an unnamed GPU" for gpu in nvidia.gpus or ())
    return "ok", f"driver {nvidia.driver or '?'} (CUDA {nvidia.cuda or '?'}) shows {names or 'no GPU'}"


def _sick(nodes: Nodes | None, machine: Machine) -> str:
    nvidia = machine.nvidia
    parts = [nvidia.error or f"the driver's state is {nvidia.status}"]
    if nvidia.status == "driver-mismatch":
        parts.append(f"libraries {nvidia.driver or 'unknown'}, kernel module {nvidia.kernel_driver or 'unknown'}")
    if nvidia.status == "compat-unsupported":
        parts.append(
            f"libcuda is {nvidia.libcuda or 'unknown'}, the driver {nvidia.kernel_driver or nvidia.driver or 'unknown'}"
        )
    if nvidia.status == "uvm-unavailable" and nodes is not None and "/dev/nvidia-uvm" not in nodes.present:
        parts.append("/dev/nvidia-uvm does not exist")
    return "; ".join(parts)


def _hidden(nodes: Nodes | None, machine: Machine) -> tuple[str, str]:
    nvidia, platform = machine.nvidia, machine.platform
    error = nvidia.error or "the driver shows no GPU"
    visible = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if nvidia.status == "bad-visible-devices" or (visible is not None and hides_every_gpu(visible)):
        return "gpus-hidden", f'CUDA_VISIBLE_DEVICES is "{visible or ""}": {error}'
    if platform.wsl and nvidia.libcuda is not None and not nvidia.libcuda.startswith("/usr/lib/wsl"):
        return "wsl-linux-driver-installed", f"libcuda was loaded from {nvidia.libcuda}: {error}"
    if platform.container:
        denied = nodes.denied if nodes is not None else ()
        if any("/dev/nvidia" in node for node in denied):
            return "gpu-lost-in-container", f"{', '.join(denied)} cannot be opened by this user: {error}"
        return "container-no-gpu-runtime", f"this is a container without a GPU: {error}"
    return "no-device", error


def _absent(facts: Facts, machine: Machine) -> tuple[str, str]:
    nvidia, platform = machine.nvidia, machine.platform
    hardware = nvidia.status == "driver-missing" or nvidia.kernel_driver is not None
    # Without any trace of NVIDIA only somebody who asks for a GPU expects one in this container.
    if platform.container and (hardware or facts.settings.insists_on_gpu):
        return "container-no-gpu-runtime", nvidia.error or "this container has no NVIDIA driver and no device nodes"
    if nvidia.status == "driver-missing":
        return "driver-missing", nvidia.error or "there is NVIDIA hardware, but no driver"
    others = [gpu.name or gpu.vendor or "a GPU" for gpu in machine.other_gpus or () if gpu.kind != "software"]
    beside = f"; other GPUs: {', '.join(others)}" if others else ""
    return "ok", f"no NVIDIA GPU and no NVIDIA driver{beside}"


@check("gpu:waiting", "whether a GPU is unused because the CPU is the default")
def waiting(facts: Facts) -> Observation:
    """Judge whether a GPU waits for somebody to ask for it."""
    plan = facts.planned.waiting
    if plan is None or plan.device is None:
        return ok("no GPU is left unused by the default")
    name = plan.device.name or "a GPU"
    seen = f"{name} could be used ({plan.build} {plan.version}), but model.device is cpu, the default"
    cost = f" (a download of {in_units(plan.download_bytes)})" if plan.download_bytes else ""
    return Observation("gpu-waits", OK, seen, words={"cost": cost})


@check("gpu:nodes", "whether this user may open the GPUs' device nodes", NODES)
def nodes(facts: Facts, found: Nodes) -> Observation:
    """Judge whether this process may open the device nodes of GPUs."""
    if not found.denied:
        can = f"{len(found.present)} GPU device nodes can be opened"
        return ok(can if found.present else "there are no GPU device nodes")
    nvidia = any(node.startswith("/dev/nvidia") for node in found.denied)
    # No build here uses the nodes of other vendors yet.
    status: FindingStatus = WARNING if nvidia and gpu_wanted(facts) else OK
    return Observation("device-nodes-denied", status, f"{', '.join(found.denied)} cannot be opened by this user")


@check("gpu:memory", "the GPU memory that IMPRINT_VRAM_GB declares")
def declared_memory(facts: Facts) -> Observation:
    """Judge IMPRINT_VRAM_GB against the largest GPU."""
    declared, machine = facts.settings.declared_gb, facts.system.machine
    if declared is None:
        if text := facts.settings.environ.get(envvars.VRAM_GB):
            return Observation("environment-invalid", WARNING, f"IMPRINT_VRAM_GB is `{text}`, not a size in GB")
        return ok("IMPRINT_VRAM_GB is not set")
    if machine is None:
        return missing(facts, "machine")
    largest = max((gpu.memory_mib for gpu in machine.nvidia.gpus or () if gpu.memory_mib is not None), default=None)
    if largest is not None and declared * 1000 > largest * 1.049:
        seen = f"IMPRINT_VRAM_GB is {declared:g}, but the largest GPU here has {largest} MiB"
        return Observation("declared-memory", WARNING, seen)
    return ok(f"IMPRINT_VRAM_GB is {declared:g}")
