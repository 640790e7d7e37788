"""Reads processor, memory and GPUs on Windows and macOS through the tools these systems bring along.

Tested on recorded output only: neither system was at hand when this was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from imprint.planning.model import Cpu, OtherGpu
from imprint.probing.host import Host
from imprint.values import Record, replace
from imprint.words import GpuKind

DEADLINE_SECONDS = 30.0
"""PowerShell alone may take seconds to start under a virus scanner."""

_MIB = 1024 * 1024

# One call answers everything. AdapterRAM stops at 4 GB, so the size comes from the display class in the registry,
# where drivers write it as a 64-bit number (learn.microsoft.com, Win32_VideoController, 2026-11).
WINDOWS_SCRIPT = r"""
$ErrorActionPreference = 'SilentlyContinue'
$class = 'HKLM:\SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}'
$sizes = @{}
Get-ChildItem $class | ForEach-Object {
  $entry = Get-ItemProperty $_.PSPath
  if ($entry.MatchingDeviceId) { $sizes[$entry.DriverDesc] = $entry.'HardwareInformation.qwMemorySize' }
}
$cpu = @(Get-CimInstance Win32_Processor | Select-Object Name, NumberOfCores)
$gpus = @(Get-CimInstance Win32_VideoController | ForEach-Object {
  [pscustomobject]@{ Name = $_.Name; Device = $_.PNPDeviceID; Memory = $sizes[$_.Name] } })
[pscustomobject]@{ cpu = $cpu; gpus = $gpus } | ConvertTo-Json -Depth 4 -Compress
"""

_WINDOWS_VENDORS = {"1002": "amd", "8086": "intel", "4D4F4351": "qualcomm", "QCOM": "qualcomm"}
_NVIDIA = "10DE"


class Seen(Record):
    """What a native tool told: the processor, the GPUs that are not NVIDIA's, and how many NVIDIA ones there are."""

    cpu: Cpu
    other_gpus: tuple[OtherGpu, ...] | None = None
    nvidia_gpus: int = 0


def survey_windows(host: Host, cpu: Cpu) -> Seen:
    """Ask PowerShell's CIM classes; `cpu` is what is known already and stays where they do not answer."""
    root = host.environ.get("SystemRoot", "C:/Windows")
    shell = f"{root}/System32/WindowsPowerShell/v1.0/powershell.exe"
    result = host.run([shell, "-NoProfile", "-NonInteractive", "-Command", WINDOWS_SCRIPT], deadline=DEADLINE_SECONDS)
    return parse_windows(result.stdout, cpu) if result.returncode == 0 else Seen(cpu)


def parse_windows(text: str, cpu: Cpu) -> Seen:
    """Return what WINDOWS_SCRIPT printed; anything malformed leaves its part unknown."""
    answer = _mapping(text)
    processors = _rows(answer.get("cpu"))
    cores = [row["NumberOfCores"] for row in processors if isinstance(row.get("NumberOfCores"), int)]
    names = [row["Name"].strip() for row in processors if isinstance(row.get("Name"), str)]
    cpu = replace(cpu, name=names[0] if names else cpu.name, physical_cores=sum(cores) or cpu.physical_cores)
    if "gpus" not in answer:
        return Seen(cpu)
    gpus, nvidia = [], 0
    for row in _rows(answer["gpus"]):
        # Only adapters on a real bus: remote desktops and virtual screens are ROOT\ or SWD\ devices, and Hyper-V's
        # and Microsoft's own renderer are vendor 1414.
        vendor = re.match(r"(?:PCI|ACPI)\\VEN_(\w+)", str(row.get("Device") or ""), re.IGNORECASE)
        code = vendor[1].upper() if vendor else ""
        nvidia += code == _NVIDIA
        if code in _WINDOWS_VENDORS:
            size = row.get("Memory")
            memory = size // _MIB if isinstance(size, int) else None
            gpus.append(_windows_gpu(_WINDOWS_VENDORS[code], str(row.get("Name") or "") or None, memory))
    return Seen(cpu, tuple(gpus), nvidia)


def survey_macos(host: Host, cpu: Cpu) -> Seen:
    """Ask sysctl, vm_stat and system_profiler; `cpu` is what is known already."""
    asked = host.run(
        ["/usr/sbin/sysctl", "hw.memsize", "hw.physicalcpu", "machdep.cpu.brand_string"], deadline=DEADLINE_SECONDS
    )
    pages = host.run(["/usr/bin/vm_stat"], deadline=DEADLINE_SECONDS)
    displays = host.run(["/usr/sbin/system_profiler", "SPDisplaysDataType", "-json"], deadline=DEADLINE_SECONDS)
    return Seen(parse_macos_cpu(asked.stdout, pages.stdout, cpu), parse_macos_displays(displays.stdout))


def parse_macos_cpu(sysctl: str, vm_stat: str, cpu: Cpu) -> Cpu:
    """Return the processor and memory that sysctl(8) and vm_stat(1) print."""
    values = dict(re.findall(r"^([\w.]+): (.+)$", sysctl, re.MULTILINE))
    size, cores = values.get("hw.memsize", ""), values.get("hw.physicalcpu", "")
    page = re.search(r"page size of (\d+) bytes", vm_stat)
    counts = re.findall(r"^Pages (?:free|inactive|speculative|purgeable):\s+(\d+)", vm_stat, re.MULTILINE)
    return replace(
        cpu,
        name=values.get("machdep.cpu.brand_string", "").strip() or cpu.name,
        physical_cores=int(cores) if cores.isdigit() else cpu.physical_cores,
        memory_mib=int(size) // _MIB if size.isdigit() else cpu.memory_mib,
        memory_free_mib=(sum(map(int, counts)) * int(page[1]) // _MIB if page and counts else cpu.memory_free_mib),
    )


def parse_macos_displays(text: str) -> tuple[OtherGpu, ...] | None:
    """Return the GPUs of `system_profiler SPDisplaysDataType -json`, None when it is not readable."""
    answer = _mapping(text)
    if "SPDisplaysDataType" not in answer:
        return None
    gpus = []
    for row in _rows(answer["SPDisplaysDataType"]):
        vendor = str(row.get("spdisplays_vendor") or "").replace("sppci_vendor_", "").split(" ")[0].lower()
        if not vendor or vendor == "nvidia":
            continue
        metal = str(row.get("spdisplays_mtlgpufamilysupport") or row.get("spdisplays_metal") or "")
        built_in = row.get("sppci_bus") == "spdisplays_builtin" or vendor == "apple"
        memory = re.fullmatch(r"(\d+) (MB|GB)", str(row.get("spdisplays_vram") or ""))
        gpus.append(
            OtherGpu(
                vendor,
                str(row.get("sppci_model") or row.get("_name") or "") or None,
                "integrated" if built_in else "discrete",
                "metal" if "metal" in metal or metal == "spdisplays_supported" else None,
                int(memory[1]) * (1024 if memory[2] == "GB" else 1) if memory else None,
            )
        )
    return tuple(gpus)


def _windows_gpu(vendor: str, name: str | None, memory: int | None) -> OtherGpu:
    # Windows does not say which adapters are integrated. Names do: a card is an Arc A or B, or a Radeon RX, Pro or VII.
    cards = r"\bArc(?:\(TM\))? (?:Pro )?[AB]\d{2,}|\bRadeon (?:\(TM\) )?(?:RX|Pro W|PRO W|VII|R9)\b"
    kind: GpuKind = "discrete" if re.search(cards, name or "") else "integrated"
    return OtherGpu(vendor, name, kind, "d3d12", memory if kind == "discrete" else None)


def _mapping(text: str) -> Mapping[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _rows(value: object) -> list[Mapping[str, Any]]:
    """Return the objects in a list; PowerShell writes a list of one as the object itself."""
    rows = value if isinstance(value, list) else [value]
    return [row for row in rows if isinstance(row, dict)]
