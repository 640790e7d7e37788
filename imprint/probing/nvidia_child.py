"""Asks libcuda and NVML and prints one JSON line; a script for a child of its own, with the standard library only.

It decides nothing: it reports what each call answered, and `nvidia.py` reads that. Loading a driver can hang or crash,
and the driver's libraries may print: the answer goes to a private copy of standard output, everything else to stderr.

Argument: JSON `{"cuda": [names], "nvml": [names], "seconds": n}`; each list is tried in order, and the process ends by
itself after `seconds`, in case whoever started it is gone.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

Library = ctypes.CDLL

# Attribute numbers of cuDeviceGetAttribute (cuda.h of CUDA 13.0).
_INTEGRATED, _PCI_BUS, _PCI_DEVICE, _PCI_DOMAIN, _MAJOR, _MINOR = 18, 33, 34, 50, 75, 76


class _Memory(ctypes.Structure):
    """The structure nvmlMemory_t (nvml.h of CUDA 13.0), in bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer: `loaded`, `load_error`, `version`, `init`, `init_name`, `failed`, `devices`, `nvml`."""
    answer: dict[str, Any] = {"devices": [], "nvml": {}}
    cuda, answer["load_error"] = _load(request["cuda"])
    if cuda is not None:
        answer["loaded"] = _path_of(cuda, "libcuda.so")
        _ask_cuda(cuda, answer)
    # NVML second: it only adds a version and free memory, and its failures must not hide what libcuda said.
    beside = [str(Path(answer["loaded"]).with_name(request["nvml"][0]))] if answer.get("loaded") else []
    nvml, answer["nvml"]["load_error"] = _load([*request["nvml"], *beside])
    if nvml is not None:
        answer["nvml"]["loaded"] = _path_of(nvml, "libnvidia-ml.so")
        _ask_nvml(nvml, answer)
    return answer


def _load(names: list[str]) -> tuple[Library | None, str | None]:
    problems = []
    loader = getattr(ctypes, "WinDLL", ctypes.CDLL)
    for name in names:
        try:
            return loader(name), None
        except OSError as problem:
            problems.append(str(problem))
    # Where several were tried, one that is there and does not load says more than one that is absent.
    telling = [text for text in problems if "No such file" not in text]
    return None, (telling or problems)[0]


def _path_of(library: Library, stem: str) -> str | None:
    """Return the file a library was really loaded from, links resolved."""
    if sys.platform == "win32":
        buffer = ctypes.create_unicode_buffer(32768)
        ask = ctypes.windll.kernel32.GetModuleFileNameW
        return buffer.value if ask(ctypes.c_void_p(library._handle), buffer, len(buffer)) else None  # noqa: SLF001
    try:
        with Path("/proc/self/maps").open(encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                path = line.rstrip("\n").split(None, 5)[5:]
                if path and Path(path[0]).name.startswith(stem):
                    return path[0]
    except OSError:
        pass
    return None


def _call(library: Library, names: tuple[str, ...], *arguments: object) -> int | None:
    """Return the status of the first of these functions that the library has, or None when it has none of them."""
    for name in names:
        try:
            function = getattr(library, name)
        except AttributeError:
            continue
        return int(function(*arguments))
    return None


def _ask_cuda(cuda: Library, answer: dict[str, Any]) -> None:
    number = ctypes.c_int(0)
    if _call(cuda, ("cuDriverGetVersion",), ctypes.byref(number)) == 0:
        answer["version"] = number.value
    answer["init"] = _call(cuda, ("cuInit",), ctypes.c_uint(0))
    if answer["init"] != 0:
        answer["init_name"] = _error_name(cuda, answer["init"])
        return
    number = ctypes.c_int(0)
    code = _call(cuda, ("cuDeviceGetCount",), ctypes.byref(number))
    if code != 0:
        answer["failed"] = {"call": "cuDeviceGetCount", "code": code, "name": _error_name(cuda, code)}
        return
    for ordinal in range(number.value):
        device = ctypes.c_int(0)
        code = _call(cuda, ("cuDeviceGet",), ctypes.byref(device), ctypes.c_int(ordinal))
        if code == 0:
            answer["devices"].append(_describe(cuda, device))
        else:
            answer["failed"] = {"call": "cuDeviceGet", "code": code, "name": _error_name(cuda, code)}


def _describe(cuda: Library, device: ctypes.c_int) -> dict[str, Any]:
    name = ctypes.create_string_buffer(256)
    named = _call(cuda, ("cuDeviceGetName",), name, ctypes.c_int(len(name)), device) == 0
    memory = ctypes.c_size_t(0)
    sized = _call(cuda, ("cuDeviceTotalMem_v2",), ctypes.byref(memory), device) == 0
    pci = ctypes.create_string_buffer(32)
    located = _call(cuda, ("cuDeviceGetPCIBusId",), pci, ctypes.c_int(len(pci)), device) == 0
    bus_id = pci.value.decode("ascii", "replace") if located else None
    if bus_id is None:
        place = [_attribute(cuda, which, device) for which in (_PCI_DOMAIN, _PCI_BUS, _PCI_DEVICE)]
        known = [number for number in place if number is not None]
        bus_id = "{:04x}:{:02x}:{:02x}.0".format(*known) if len(known) == len(place) else None
    return {
        "name": name.value.decode("utf-8", "replace") if named else None,
        "memory": memory.value if sized else None,
        "major": _attribute(cuda, _MAJOR, device),
        "minor": _attribute(cuda, _MINOR, device),
        "integrated": _attribute(cuda, _INTEGRATED, device),
        "pci_bus_id": bus_id,
        # Version 2 answers with the MIG slice's own UUID where version 1 answers with the whole GPU's.
        "uuid": _uuid(cuda, ("cuDeviceGetUuid_v2", "cuDeviceGetUuid"), device),
        "whole_uuid": _uuid(cuda, ("cuDeviceGetUuid",), device),
    }


def _attribute(cuda: Library, which: int, device: ctypes.c_int) -> int | None:
    value = ctypes.c_int(0)
    asked = _call(cuda, ("cuDeviceGetAttribute",), ctypes.byref(value), ctypes.c_int(which), device)
    return value.value if asked == 0 else None


def _uuid(cuda: Library, names: tuple[str, ...], device: ctypes.c_int) -> str | None:
    raw = (ctypes.c_ubyte * 16)()
    if _call(cuda, names, raw, device) != 0:
        return None
    text = bytes(raw).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _error_name(cuda: Library, code: int | None) -> str | None:
    name = ctypes.c_char_p()
    if code is None or _call(cuda, ("cuGetErrorName",), ctypes.c_int(code), ctypes.byref(name)) != 0:
        return None
    return name.value.decode("ascii", "replace") if name.value else None


def _ask_nvml(nvml: Library, answer: dict[str, Any]) -> None:
    answer["nvml"]["init"] = _call(nvml, ("nvmlInit_v2", "nvmlInit"))
    if answer["nvml"]["init"] != 0:
        return
    version = ctypes.create_string_buffer(96)
    if _call(nvml, ("nvmlSystemGetDriverVersion",), version, ctypes.c_uint(len(version))) == 0:
        answer["nvml"]["driver"] = version.value.decode("ascii", "replace")
    for device in answer["devices"]:
        for prefix in ("GPU-", "MIG-"):
            handle = ctypes.c_void_p()
            text = (prefix + (device["uuid"] or "")).encode()
            if _call(nvml, ("nvmlDeviceGetHandleByUUID",), text, ctypes.byref(handle)) != 0:
                continue
            memory = _Memory()
            if _call(nvml, ("nvmlDeviceGetMemoryInfo",), handle, ctypes.byref(memory)) == 0:
                device["memory_free"] = memory.free
            device["nvml_prefix"] = prefix
            break
    _call(nvml, ("nvmlShutdown",))


def _guard(seconds: int) -> None:
    """Leave no core file behind, and end by ourselves if nobody is left to end us."""
    if sys.platform == "win32":
        return
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(seconds)


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    private = os.dup(1)
    os.dup2(2, 1)
    _guard(int(wanted.get("seconds", 60)))
    line = json.dumps(main(wanted)) + "\n"
    os.write(private, line.encode("ascii"))
    # Straight out: a sick driver must not get to run its exit handlers once the answer is written.
    os._exit(0)
