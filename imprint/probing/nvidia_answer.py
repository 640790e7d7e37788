"""Reads the answer of `nvidia_child.py`: what each call returned becomes one status of the machine document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from imprint.last_words import decisive_line, how_it_ended
from imprint.planning.model import Gpu, Nvidia
from imprint.probing.host import ChildResult
from imprint.probing.libraries import in_stubs
from imprint.values import Record
from imprint.words import NvidiaStatus

# Results of cuInit (cuda.h of CUDA 13.0) that mean something particular.
_NO_DEVICE, _INVALID_DEVICE, _STUB = 100, 101, 34
_DRIVER_MISMATCH, _COMPAT_UNSUPPORTED, _UNKNOWN = 803, 804, 999
_CUDA_NAMES = {
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    _STUB: "CUDA_ERROR_STUB_LIBRARY",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    _NO_DEVICE: "CUDA_ERROR_NO_DEVICE",
    _INVALID_DEVICE: "CUDA_ERROR_INVALID_DEVICE",
    304: "CUDA_ERROR_OPERATING_SYSTEM",
    802: "CUDA_ERROR_SYSTEM_NOT_READY",
    _DRIVER_MISMATCH: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    _COMPAT_UNSUPPORTED: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    _UNKNOWN: "CUDA_ERROR_UNKNOWN",
}

_STATUS_OF_CODE: Mapping[int, NvidiaStatus] = {
    _NO_DEVICE: "no-device",
    _INVALID_DEVICE: "bad-visible-devices",
    _DRIVER_MISMATCH: "driver-mismatch",
    _COMPAT_UNSUPPORTED: "compat-unsupported",
    _UNKNOWN: "uvm-unavailable",
}

_Status = tuple[NvidiaStatus, str | None, tuple[Gpu, ...] | None]
"""A status of the machine document, what was seen, and the GPUs (None: unknown)."""

_NVML_MISMATCH = 18
"""NVML_ERROR_LIB_RM_VERSION_MISMATCH (nvml.h): library and kernel module are of different driver versions."""

_MIB = 1024 * 1024


class Surroundings(Record):
    """What reading an answer needs besides: the kernel module's version, and facts that tell one cause from another.

    `hardware` says that a GPU or a device node was seen; `uvm` whether a missing or stale nvidia_uvm can be meant at
    all (Linux with the ordinary driver); `visible_devices` is CUDA_VISIBLE_DEVICES, None when unset.
    """

    kernel_driver: str | None = None
    hardware: bool = False
    uvm: bool = True
    visible_devices: str | None = None


def read_answer(result: ChildResult, around: Surroundings) -> Nvidia:
    """Return the NVIDIA part of a machine document; the answer may be a crash, a hang or nonsense. Never raises."""
    kernel = around.kernel_driver
    problem = _trouble(result)
    if result.timed_out:
        return Nvidia(status="timeout", driver=kernel, kernel_driver=kernel, error=problem)
    if problem is None:
        try:
            return parse_answer(json.loads(result.stdout), around)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as reason:
            problem = f"the driver's probe gave an answer that cannot be read ({type(reason).__name__})"
    return Nvidia(status="error", driver=kernel, kernel_driver=kernel, error=problem)


def parse_answer(answer: Mapping[str, Any], around: Surroundings) -> Nvidia:
    """Return the NVIDIA part for a well-formed answer; raises KeyError, TypeError or ValueError for another one."""
    loaded = answer.get("loaded")
    nvml = answer["nvml"]
    status, error, gpus = _status(answer, around)
    return Nvidia(
        status=status,
        driver=_driver_version(status, answer, around.kernel_driver),
        kernel_driver=around.kernel_driver or nvml.get("driver"),
        # A stub answers with a version as well; it is none that anything can use.
        cuda=None if status in ("none", "driver-missing") else parse_cuda_version(answer.get("version")),
        libcuda=loaded,
        error=error,
        gpus=gpus,
    )


def parse_cuda_version(version: object) -> str | None:
    """Return `12.8` for 12080, the way cuDriverGetVersion counts; None for 0, which means no driver."""
    if not isinstance(version, int) or version < 1000:
        return None
    return f"{version // 1000}.{version % 1000 // 10}"


def _trouble(result: ChildResult) -> str | None:
    """Return what went wrong with the child itself, or None when it wrote an answer and ended well."""
    if result.not_started is not None:
        return f"the driver's probe could not be started: {result.not_started}"
    if result.timed_out:
        return "the driver did not answer in time"
    if result.truncated:
        return "the driver's probe wrote far more than an answer"
    code = result.returncode
    if code is None or code == 0:
        return None
    line = decisive_line(result.stderr)
    return f"the driver's probe ended with {how_it_ended(code)}" + (f": {line}" if line else "")


def _status(answer: Mapping[str, Any], around: Surroundings) -> _Status:
    load_error = answer.get("load_error")
    if load_error is not None:
        return _not_loaded(str(load_error), around)
    code = answer["init"]
    if code == _STUB or in_stubs(str(answer.get("loaded"))):
        return _not_loaded(f"{answer.get('loaded')} is a stub for linking, not a driver", around)
    if code != 0:
        return _init_failed(answer, around)
    gpus, failed = _gpus(answer["devices"]), answer.get("failed")
    error = f"{failed['call']} answered {_named(failed['code'], failed.get('name'))}" if failed else None
    if gpus:
        return "ok", error, gpus
    return ("error", error, None) if failed else ("no-device", "libcuda counts 0 devices", ())


def _init_failed(answer: Mapping[str, Any], around: Surroundings) -> _Status:
    code = answer["init"]
    error = f"cuInit answered {_named(code, answer.get('init_name'))}"
    status = _STATUS_OF_CODE.get(code, "error")
    if answer["nvml"].get("init") == _NVML_MISMATCH:
        error += f"; nvmlInit answered {_NVML_MISMATCH} (NVML_ERROR_LIB_RM_VERSION_MISMATCH)"
        status = "driver-mismatch"
    elif code == _INVALID_DEVICE and around.visible_devices is not None:
        error += f" for CUDA_VISIBLE_DEVICES={around.visible_devices}"
    elif code == _COMPAT_UNSUPPORTED:
        library = _upgraded(answer.get("loaded"), around.kernel_driver)
        if library:
            status = "driver-mismatch"
            error += f"; library {library}, kernel module {around.kernel_driver}"
    elif code == _UNKNOWN and not around.uvm:
        status = "error"
    return status, error, None if status == "error" else ()


def _upgraded(loaded: str | None, kernel: str | None) -> str | None:
    """Return the library's own version where a driver was upgraded without a reboot, which code 804 also stands for.

    Then no compat folder is involved, and the library's version differs from the kernel module's.
    """
    library = _version_in_name(loaded)
    return library if kernel and library != kernel and "compat" not in str(loaded) else None


def _not_loaded(problem: str, around: Surroundings) -> _Status:
    # Absent, or there for another architecture, or a stub: this process has no driver library. Anything else
    # (a truncated file, a library it needs and does not find) is a driver that is there and sick.
    absent = re.search(r"(^|/)(libcuda\.so\S*|nvcuda\.dll): cannot open|wrong ELF class|stub for linking", problem)
    if not absent and "nvcuda.dll" not in problem:
        return "error", f"libcuda cannot be loaded: {problem}", None
    return ("driver-missing" if around.hardware else "none"), problem, ()


def _named(code: object, name: object) -> str:
    known = name or (_CUDA_NAMES.get(code) if isinstance(code, int) else None)
    return f"{code} ({known})" if known else str(code)


def _version_in_name(path: str | None) -> str | None:
    found = re.search(r"\.so\.(\d{3,}(?:\.\d+)+)$", path or "")
    return found[1] if found else None


def _driver_version(status: str, answer: Mapping[str, Any], kernel: str | None) -> str | None:
    """Return the version of the user's half of the driver: NVML's, else the file's own name, else the kernel's."""
    named = _version_in_name(answer["nvml"].get("loaded")) or _version_in_name(answer.get("loaded"))
    told = answer["nvml"].get("driver")
    if told or status != "driver-mismatch":
        return told or kernel or named
    return named or kernel


def _gpus(devices: Sequence[Mapping[str, Any]]) -> tuple[Gpu, ...]:
    """Return the devices numbered by PCI address, whatever order CUDA gave them in (it may sort fastest first)."""
    order = sorted(range(len(devices)), key=lambda at: (str(devices[at].get("pci_bus_id") or "~").lower(), at))
    return tuple(_gpu(index, devices[at]) for index, at in enumerate(order))


def _gpu(index: int, device: Mapping[str, Any]) -> Gpu:
    uuid, whole = device.get("uuid"), device.get("whole_uuid")
    name = device.get("name")
    mig = (
        device.get("nvml_prefix") == "MIG-"
        or (uuid is not None and whole is not None and uuid != whole)
        or re.search(r"\bMIG \d+[gc]\.", name or "") is not None
    )
    major, minor = device.get("major"), device.get("minor")
    integrated = device.get("integrated")
    pci = device.get("pci_bus_id")
    return Gpu(
        index=index,
        uuid=f"{'MIG' if mig else 'GPU'}-{uuid}" if uuid else None,
        name=name or None,
        compute_capability=None if major is None or minor is None else f"{major}.{minor}",
        memory_mib=_mib(device.get("memory")),
        memory_free_mib=_mib(device.get("memory_free")),
        integrated=None if integrated is None else bool(integrated),
        mig=mig,
        pci_bus_id=pci.lower() if pci else None,
    )


def _mib(size: int | None) -> int | None:
    return None if size is None else size // _MIB
