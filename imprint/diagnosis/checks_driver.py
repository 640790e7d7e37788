"""Checks of the NVIDIA driver, its device nodes and what hides a GPU from this process. Pure."""

from __future__ import annotations

from imprint import envvars
from imprint.causes.circumstances import planning_words
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import ERROR, OK, WARNING, Finding
from imprint.diagnosis.judging import finding, gpu_wanted, missing
from imprint.planning.driver import hides_every_gpu
from imprint.planning.model import Machine

_SICK = {
    "driver-mismatch": "driver-mismatch-reboot",
    "compat-unsupported": "forward-compat-on-geforce",
    "uvm-unavailable": "uvm-unavailable",
    "timeout": "driver-unreadable",
    "error": "driver-unreadable",
}
"""States of a driver that is there and does not work, by the machine document's word: told whatever was asked."""

_OLD = frozenset({"driver-too-old", "ptx-needs-newer-driver"})


def driver(facts: Facts) -> list[Finding]:
    """Judge what the NVIDIA driver answered."""
    check = "gpu:driver"
    if facts.machine is None:
        return missing(facts, check, "machine")
    code, seen = _state(facts, facts.machine)
    status = OK
    if code in _SICK.values() or code == "wsl-linux-driver-installed":
        status = ERROR if facts.device_asked == "gpu" else WARNING
    elif code != "ok" and gpu_wanted(facts):
        status = WARNING
    return [finding(facts, check, code, status, seen, words=_words(facts, facts.machine))]


def _state(facts: Facts, machine: Machine) -> tuple[str, str]:
    nvidia = machine.nvidia
    if nvidia.status in _SICK:
        return _SICK[nvidia.status], _sick(facts, machine)
    if nvidia.status in {"no-device", "bad-visible-devices"}:
        return _hidden(facts, machine)
    if nvidia.status in {"driver-missing", "none"}:
        return _absent(facts, machine)
    if nvidia.status is None:
        return "ok", "it is not known whether this system has an NVIDIA driver"
    if facts.plan is not None and facts.plan.code in _OLD:
        return "driver-too-old", facts.plan.reason
    names = ", ".join(gpu.name or "an unnamed GPU" for gpu in nvidia.gpus or ())
    return "ok", f"driver {nvidia.driver or '?'} (CUDA {nvidia.cuda or '?'}) shows {names or 'no GPU'}"


def _sick(facts: Facts, machine: Machine) -> str:
    nvidia = machine.nvidia
    parts = [nvidia.error or f"the driver's state is {nvidia.status}"]
    if nvidia.status == "driver-mismatch":
        parts.append(f"libraries {nvidia.driver or 'unknown'}, kernel module {nvidia.kernel_driver or 'unknown'}")
    if nvidia.status == "compat-unsupported":
        parts.append(
            f"libcuda is {nvidia.libcuda or 'unknown'}, the driver {nvidia.kernel_driver or nvidia.driver or 'unknown'}"
        )
    if nvidia.status == "uvm-unavailable" and facts.nodes is not None and "/dev/nvidia-uvm" not in facts.nodes.present:
        parts.append("/dev/nvidia-uvm does not exist")
    return "; ".join(parts)


def _hidden(facts: Facts, machine: Machine) -> tuple[str, str]:
    nvidia, platform = machine.nvidia, machine.platform
    error = nvidia.error or "the driver shows no GPU"
    visible = machine.environment.get("CUDA_VISIBLE_DEVICES")
    if nvidia.status == "bad-visible-devices" or (visible is not None and hides_every_gpu(visible)):
        return "gpus-hidden", f'CUDA_VISIBLE_DEVICES is "{visible or ""}": {error}'
    if platform.wsl and nvidia.libcuda is not None and not nvidia.libcuda.startswith("/usr/lib/wsl"):
        return "wsl-linux-driver-installed", f"libcuda was loaded from {nvidia.libcuda}: {error}"
    if platform.container:
        lost = facts.nodes is not None and any("/dev/nvidia" in node for node in facts.nodes.denied)
        if lost and facts.nodes is not None:
            return "gpu-lost-in-container", f"{', '.join(facts.nodes.denied)} cannot be opened by this user: {error}"
        return "container-no-gpu-runtime", f"this is a container without a GPU: {error}"
    return "no-device", error


def _absent(facts: Facts, machine: Machine) -> tuple[str, str]:
    nvidia, platform = machine.nvidia, machine.platform
    hardware = nvidia.status == "driver-missing" or nvidia.kernel_driver is not None
    # Without any trace of NVIDIA only somebody who asks for a GPU expects one in this container.
    if platform.container and (hardware or facts.device_asked == "gpu"):
        return "container-no-gpu-runtime", nvidia.error or "this container has no NVIDIA driver and no device nodes"
    if nvidia.status == "driver-missing":
        return "driver-missing", nvidia.error or "there is NVIDIA hardware, but no driver"
    others = [gpu.name or gpu.vendor or "a GPU" for gpu in machine.other_gpus or () if gpu.kind != "software"]
    beside = f"; other GPUs: {', '.join(others)}" if others else ""
    return "ok", f"no NVIDIA GPU and no NVIDIA driver{beside}"


def _words(facts: Facts, machine: Machine) -> dict[str, str | None]:
    words = planning_words(machine)
    # A hint about something else than the driver is told by the check that sums up.
    words["hint"] = facts.plan.hint if facts.plan is not None and facts.plan.code in _OLD else None
    return words


def nodes(facts: Facts) -> list[Finding]:
    """Judge whether this process may open the device nodes of GPUs."""
    check = "gpu:nodes"
    if facts.nodes is None:
        return missing(facts, check, "nodes")
    if not facts.nodes.denied:
        seen = f"{len(facts.nodes.present)} GPU device nodes can be opened"
        return [finding(facts, check, "ok", OK, seen if facts.nodes.present else "there are no GPU device nodes")]
    nvidia = any(node.startswith("/dev/nvidia") for node in facts.nodes.denied)
    # No build here uses the nodes of other vendors yet.
    status = WARNING if nvidia and gpu_wanted(facts) else OK
    seen = f"{', '.join(facts.nodes.denied)} cannot be opened by this user"
    return [finding(facts, check, "device-nodes-denied", status, seen)]


def declared_memory(facts: Facts) -> list[Finding]:
    """Judge IMPRINT_VRAM_GB against the largest GPU."""
    check = "gpu:memory"
    if facts.declared_gb is None:
        if text := facts.environ.get(envvars.VRAM_GB):
            return [
                finding(facts, check, "environment-invalid", WARNING, f"IMPRINT_VRAM_GB is `{text}`, not a size in GB")
            ]
        return [finding(facts, check, "ok", OK, "IMPRINT_VRAM_GB is not set")]
    if facts.machine is None:
        return missing(facts, check, "machine")
    sizes = [gpu.memory_mib for gpu in facts.machine.nvidia.gpus or () if gpu.memory_mib is not None]
    largest = max(sizes, default=None)
    if largest is not None and facts.declared_gb * 1000 > largest * 1.049:
        seen = f"IMPRINT_VRAM_GB is {facts.declared_gb:g}, but the largest GPU here has {largest} MiB"
        return [finding(facts, check, "declared-memory", WARNING, seen)]
    return [finding(facts, check, "ok", OK, f"IMPRINT_VRAM_GB is {facts.declared_gb:g}")]
