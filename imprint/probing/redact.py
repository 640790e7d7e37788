"""Takes out of a machine document what identifies the machine or its owner, and keeps what a plan depends on.

Each field passes by its shape: versions, words that the survey itself writes, makers' names of chips. What has none of
these is replaced by a word that planning treats as it treated the value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from imprint import envvars
from imprint.planning.driver import WSL_LIBRARIES, hides_every_gpu
from imprint.planning.model import Cpu, Gpu, Libc, Machine, Nvidia, OtherGpu, Platform, Python
from imprint.probing.processor import FLAGS
from imprint.redaction import HIDDEN, chip_words, redact_chip, redact_text
from imprint.values import replace
from imprint.words import GPU_KINDS, NVIDIA_STATUSES

OTHER = "other"
"""For a word that none of ours knows: an operating system, an architecture, a C library."""

_VERSION = re.compile(r"\d{1,5}(?:\.\d{1,5}){0,3}(?:(?:a|b|rc)\d{1,2})?")
_ABI = re.compile(r"(?:cp|pp|graalpy|pypy)\d{1,3}t?")
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?", re.IGNORECASE)
_LIBRARY = re.compile(r"(?:lib)?(?:cuda|nvcuda|vulkan)(?:-1)?\.(?:so(?:\.\d{1,5}){0,3}|dll|dylib)")
_SYSTEMS = ("linux", "windows", "macos", "freebsd", "openbsd", "netbsd", "android")
_ARCHITECTURES = (
    *("x86_64", "aarch64", "i686", "armv7l", "ppc64le", "ppc64", "s390x", "riscv64", "loongarch64", "sparc64"),
)
_LIBCS = ("glibc", "musl", "bionic", "uclibc")
_VENDORS = ("nvidia", "amd", "intel", "apple", "qualcomm", "arm", "google", "microsoft", "mesa", "imagination")
_UUID = re.compile(r"(?:GPU|MIG)-", re.IGNORECASE)
_INDEX = re.compile(r"-?\d{1,3}")
_FLAGS = frozenset(FLAGS.values())


def redact(machine: Machine) -> Machine:
    """Return the machine with UUIDs numbered and folders, host names and all that has no known shape removed.

    It still gives the same plan. The n-th GPU becomes GPU-00000000-0000-0000-0000-00000000000n (MIG- for a slice), also
    where the environment names it. Of a library's path the folder becomes `…`, except WSL's own folder, which planning
    tells from others.
    """
    uuids: dict[str, str] = {}
    for number, gpu in enumerate(machine.nvidia.gpus or ()):
        if gpu.uuid:
            uuids[gpu.uuid] = f"{'MIG' if gpu.mig else 'GPU'}-00000000-0000-0000-0000-{number:012d}"
    chips, others = words_of_chips(machine), machine.other_gpus
    return replace(
        machine,
        platform=_platform(machine.platform),
        python=Python(_shaped(machine.python.version, _VERSION), _shaped(machine.python.abi, _ABI, OTHER)),
        cpu=_cpu(machine.cpu),
        nvidia=_nvidia(machine.nvidia, uuids, chips),
        other_gpus=None if others is None else tuple(map(_other_gpu, others)),
        vulkan=replace(
            machine.vulkan,
            status=_one_of(machine.vulkan.status, (*NVIDIA_STATUSES, "missing")),
            loader=_library(machine.vulkan.loader),
            error=_text(machine.vulkan.error, chips),
        ),
        environment={
            name: _variable(name, value, uuids) for name, value in machine.environment.items() if name in _VARIABLES
        },
    )


def words_of_chips(machine: Machine) -> frozenset[str]:
    """Return the words of the chips' names there that may pass in a text."""
    names = [gpu.name for gpu in machine.nvidia.gpus or ()] + [gpu.name for gpu in machine.other_gpus or ()]
    return frozenset(word for name in (*names, machine.cpu.name) for word in chip_words(name))


def _platform(found: Platform) -> Platform:
    libc = found.libc
    return replace(
        found,
        os=_one_of(found.os, _SYSTEMS),
        arch=_one_of(found.arch, _ARCHITECTURES),
        libc=None if libc is None else Libc(_one_of(libc.name, _LIBCS), _shaped(libc.version, _VERSION)),
        os_version=_shaped(found.os_version, _VERSION),
    )


def _cpu(found: Cpu) -> Cpu:
    flags = None if found.flags is None else tuple(flag for flag in found.flags if flag in _FLAGS)
    return replace(found, name=redact_chip(found.name), flags=flags)


def _nvidia(found: Nvidia, uuids: Mapping[str, str], chips: frozenset[str]) -> Nvidia:
    return replace(
        found,
        status=_one_of(found.status, NVIDIA_STATUSES),
        driver=_shaped(found.driver, _VERSION),
        kernel_driver=_shaped(found.kernel_driver, _VERSION),
        cuda=_shaped(found.cuda, _VERSION),
        libcuda=_library(found.libcuda),
        error=_text(found.error, chips),
        gpus=None if found.gpus is None else tuple(_gpu(gpu, uuids) for gpu in found.gpus),
    )


def _gpu(gpu: Gpu, uuids: Mapping[str, str]) -> Gpu:
    return replace(
        gpu,
        uuid=uuids.get(gpu.uuid or ""),
        name=redact_chip(gpu.name),
        compute_capability=_shaped(gpu.compute_capability, _CAPABILITY),
        pci_bus_id=_shaped(gpu.pci_bus_id, _PCI),
    )


def _other_gpu(gpu: OtherGpu) -> OtherGpu:
    return replace(
        gpu,
        vendor=_one_of(gpu.vendor, _VENDORS),
        name=redact_chip(gpu.name),
        kind=_one_of(gpu.kind, GPU_KINDS),
        api=_one_of(gpu.api, ("vulkan", "d3d12", "metal")),
    )


def _one_of(value: str | None, known: Collection[str]) -> str | None:
    return value if value is None or value.lower() in known else OTHER


def _shaped(value: str | None, shape: re.Pattern[str], otherwise: str | None = None) -> str | None:
    return value if value is None or shape.fullmatch(value) else otherwise


def _library(path: str | None) -> str | None:
    """Return a library's path with its folder as `…`, WSL's own aside; a name of another shape becomes `…` as well."""
    if path is None:
        return None
    name = re.split(r"[/\\]", path)[-1]
    known = _LIBRARY.fullmatch(name) is not None
    if path.startswith(WSL_LIBRARIES):
        return path if known and path == f"{WSL_LIBRARIES}lib/{name}" else f"{WSL_LIBRARIES}{HIDDEN}"
    return f"{HIDDEN}/{name if known else HIDDEN}"


def _text(text: str | None, chips: frozenset[str]) -> str | None:
    return None if text is None else redact_text(text, chips)


def _variable(name: str, value: str, uuids: Mapping[str, str]) -> str:
    if hides_every_gpu(value):
        return value
    if not name.endswith("_VISIBLE_DEVICES"):
        return value if value in _VARIABLES[name] else OTHER
    return ",".join(_entry(entry.strip(), uuids, _VARIABLES[name]) for entry in value.split(","))


def _entry(entry: str, uuids: Mapping[str, str], words: Collection[str]) -> str:
    """Return one GPU of a list: its index, or its number where a UUID names one, beginnings too as CUDA allows."""
    if _INDEX.fullmatch(entry) or entry in words or entry in uuids.values():
        return entry
    known = [name for uuid, name in uuids.items() if entry and uuid.lower().startswith(entry.lower())]
    if known:
        return known[0]
    named = _UUID.match(entry)
    return f"{named[0].upper()}{HIDDEN}" if named is not None else HIDDEN


_SWITCH = ("0", "1")
_VARIABLES: Mapping[str, Collection[str]] = {
    "CUDA_VISIBLE_DEVICES": (),
    "CUDA_DEVICE_ORDER": ("PCI_BUS_ID", "FASTEST_FIRST"),
    "CUDA_DISABLE_PTX_JIT": _SWITCH,
    "CUDA_FORCE_PTX_JIT": _SWITCH,
    "NVIDIA_VISIBLE_DEVICES": ("all", "none", "void"),
    "NVIDIA_DRIVER_CAPABILITIES": ("all", "compute", "utility", "compute,utility", "graphics,utility,compute"),
    envvars.ALLOW_SOFTWARE_GPU: _SWITCH,
}
"""The variables of a machine document, and the values of each that are told."""
