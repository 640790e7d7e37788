"""Every reason code, with the sentence fragment that says what was seen.

A fragment has no capital letter of its own and no full stop, so that setup, status and doctor can put it after a
colon. docs/reason-codes.md explains each code to a person; a test holds the two and the interface equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from imprint.planning.builds import NATIVE, Build
from imprint.planning.facts import listed
from imprint.values import Record


class Refused(Record):
    """Why one build is not planned: the gate that refused it, the code, the fact `seen`, and what was needed."""

    build: Build
    gate: str
    code: str
    seen: str
    need: str = ""
    uncovered: str = ""
    """The GPU that the build has no code for under any driver; told where the driver is what refuses it."""


_MANY = 3
"""More titles than this are not listed one by one."""

Fragment = Callable[[str, str, str], str]
"""Takes what was seen, the names of the builds it refused, and what they need; returns the fragment."""

GPU_CODES = ("gpu-native", "gpu-jit", "gpu-portable")
"""Codes of a plan that runs on a GPU."""

NULL_CODES = ("os-no-wheel", "arch-no-wheel", "libc-musl", "libc-too-old", "python-no-wheel", "python-abi-no-wheel")
"""Codes of a machine for which no build exists at all, in the order in which they are judged."""

NOTE_CODES = ("smaller-gpu", "installed-build-kept")
"""Codes of notices that refuse nothing."""

_FRAGMENTS: dict[str, Fragment] = {
    "device-cpu": lambda seen, _builds, _need: f"model.device is {seen}",
    "os-no-gpu-build": lambda seen, builds, _need: f"there is no {builds} build for {seen}",
    "arch-no-gpu-build": lambda seen, builds, _need: f"there is no {builds} build for {seen}",
    "python-no-gpu-wheel": lambda seen, builds, _need: f"the {builds} build has no wheel for {seen}",
    "jetson-vendor-build": lambda seen, _builds, _need: (
        f"{seen} is a Jetson GPU, which only NVIDIA's own build of ONNX Runtime supports"
    ),
    "no-nvidia-gpu": lambda _seen, _builds, _need: "no NVIDIA GPU and no NVIDIA driver were found",
    "vendor-not-nvidia": lambda seen, _builds, _need: (
        f"{seen} is not an NVIDIA GPU, and CUDA builds run only on NVIDIA GPUs"
    ),
    "driver-missing": lambda _seen, _builds, _need: "this machine has an NVIDIA GPU, but no NVIDIA driver",
    "driver-too-old": lambda seen, _builds, need: f"{seen} is too old: {need}",
    "driver-mismatch": lambda seen, _builds, _need: (
        f"the NVIDIA driver's libraries and kernel module differ{seen}, as after an update without a restart"
    ),
    "driver-unreadable": lambda seen, _builds, _need: f"the NVIDIA driver could not be read ({seen})",
    "compat-unsupported": lambda seen, _builds, _need: (
        f"libcuda{seen} is newer than the NVIDIA kernel module, and this GPU does not allow that"
    ),
    "uvm-unavailable": lambda _seen, _builds, _need: (
        "the NVIDIA driver cannot use its memory module (nvidia_uvm) from this process"
    ),
    "no-device": lambda _seen, _builds, _need: "the NVIDIA driver is installed but shows no GPU",
    "container-no-gpu": lambda _seen, _builds, _need: "no GPU is passed into this container",
    "wsl-linux-driver": lambda seen, _builds, _need: (
        f"libcuda was loaded from {seen}, a Linux driver that hides the one WSL provides in /usr/lib/wsl"
    ),
    "visible-devices-empty": lambda seen, _builds, _need: f'CUDA_VISIBLE_DEVICES is "{seen}", which hides every GPU',
    "visible-devices-invalid": lambda seen, _builds, _need: f"CUDA_VISIBLE_DEVICES{seen} names no GPU that is here",
    "gpu-not-found": lambda seen, _builds, need: f"model.gpu_device is {seen}, and {need}",
    "gpu-list-unsupported": lambda seen, _builds, _need: (
        f"model.gpu_device is {seen}, but embeddings run on one GPU only"
    ),
    "compute-capability-unsupported": lambda seen, builds, _need: f"{seen} has no code in the {builds} build",
    "ptx-needs-newer-driver": lambda seen, _builds, need: f"{seen} needs {need}",
    "check-failed": lambda seen, builds, said: f"the check of the {builds} build failed{said} on {seen}",
    "not-reached": lambda seen, _builds, _need: f"not tried, since {seen}",
    "os-no-wheel": lambda seen, _builds, _need: f"ONNX Runtime has no wheel for {seen}",
    "arch-no-wheel": lambda seen, _builds, _need: f"ONNX Runtime has no wheel for {seen}",
    "libc-musl": lambda _seen, _builds, _need: "this system uses musl, but ONNX Runtime has wheels only for glibc",
    "libc-too-old": lambda seen, builds, need: f"{seen} is older than the {builds} build needs ({need})",
    "python-no-wheel": lambda seen, _builds, _need: f"ONNX Runtime has no wheel for {seen} on this system",
    "python-abi-no-wheel": lambda seen, _builds, _need: f"ONNX Runtime has no wheel for {seen} on this system",
}

CODES = (*GPU_CODES, *_FRAGMENTS)
"""Every code a plan, or a refusal in it, can carry."""


def reason(refusals: Sequence[Refused]) -> str:
    """Return the one fragment for refusals of several builds by the same code; at least one is given."""
    first = refusals[0]
    titles = list(dict.fromkeys(refused.build.title for refused in refusals))
    builds = listed(titles, "or") if len(titles) <= _MANY else "CUDA"
    if first.code == "driver-too-old" and all(refused.uncovered for refused in refusals):
        return f"{_uncovered(first.uncovered, builds)}, so a newer driver than this ({first.seen}) would not help"
    # A driver for a build without code for the GPU is nothing that anybody needs.
    needs = list(dict.fromkeys(refused.need for refused in refusals if not refused.uncovered))
    return _FRAGMENTS[first.code](first.seen, builds, listed(needs))


def _uncovered(gpu: str, builds: str) -> str:
    return _FRAGMENTS["compute-capability-unsupported"](gpu, builds, "")


def native(gpu: str, build: Build, driver: str) -> str:
    """Say that a GPU runs a build's machine code as it is; `driver` is a clause of its own."""
    return f"{gpu} has native code in the {build.title} build, {driver}"


def jit(gpu: str, build: Build, driver: str) -> str:
    """Say that the driver compiles the build's code for a GPU first."""
    return f"{gpu} runs PTX of the {build.title} build, compiled on the first run, which is slow, and {driver}"


def portable(gpu: str, build: Build, api: str) -> str:
    """Say that a GPU of any vendor runs the portable build."""
    return f"{gpu} runs the {build.title} build through {api}"


def smaller(larger: str, chosen: str, how: str, build: Build) -> str:
    """Say that a larger GPU was not chosen, and what it would have run with."""
    with_what = "native code" if how == NATIVE else "PTX"
    return (
        f"{larger} has more memory, but would run with {with_what} of the {build.title} build, which {chosen} precedes"
    )
