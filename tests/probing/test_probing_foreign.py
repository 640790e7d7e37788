"""Windows and macOS on recorded output: neither is at hand, so what is held is how their tools' answers are read."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from imprint.planning.model import Cpu, OtherGpu
from imprint.probing.foreign_systems import parse_macos_displays, parse_windows
from imprint.probing.host import ChildResult
from imprint.probing.survey import survey
from imprint.probing.system import parse_macos_version
from support.fake_host import LINUX, FakeHost, Program

WINDOWS = {**LINUX, "platform": "win32", "os_version": "10.0.22631", "glibc": None, "loader": None, "release": None}
MACOS = {**LINUX, "platform": "darwin", "machine": "arm64", "release": "23.6.0", "glibc": None, "loader": None}

SHELL = "C:/Windows/System32/WindowsPowerShell/v1.0/powershell.exe"
NVCUDA = {"C:/Windows/System32/nvcuda.dll": "MZ"}

CIM = {
    "cpu": {"Name": "AMD Ryzen 9 7950X 16-Core Processor            ", "NumberOfCores": 16},
    "gpus": [
        {"Name": "Microsoft Remote Display Adapter", "Device": r"SWD\REMOTEDISPLAYENUM\1", "Memory": None},
        {"Name": "AMD Radeon(TM) Graphics", "Device": r"PCI\VEN_1002&DEV_164E&SUBSYS_1", "Memory": 536870912},
        {"Name": "AMD Radeon RX 7600 XT", "Device": r"PCI\VEN_1002&DEV_7480&SUBSYS_2", "Memory": 17163091968},
        {"Name": "Intel(R) Arc(TM) A770 Graphics", "Device": r"PCI\VEN_8086&DEV_56A0", "Memory": 17179869184},
        {"Name": "NVIDIA GeForce RTX 5070", "Device": r"PCI\VEN_10DE&DEV_2F04", "Memory": 12884901888},
    ],
}


def printing(text: str) -> Program:
    """Return a program that prints this."""
    return lambda *_: ChildResult(0, stdout=text)


def powershell(*_: object) -> ChildResult:
    return ChildResult(0, stdout=json.dumps(CIM))


def test_windows() -> None:
    """GPUs, processor and memory of one machine; an NVIDIA card without nvcuda.dll is a missing driver."""
    host = FakeHost(facts=WINDOWS, programs={SHELL: powershell}, main_memory=(32 << 30, 20 << 30))
    machine = survey(host)
    assert (machine.platform.os, machine.platform.os_version, machine.platform.libc) == ("windows", "10.0.22631", None)
    assert machine.cpu == Cpu("AMD Ryzen 9 7950X 16-Core Processor", 16, 32768, 20480, None)
    assert machine.nvidia.status == "driver-missing"
    assert machine.other_gpus == (
        OtherGpu("amd", "AMD Radeon(TM) Graphics", "integrated", "d3d12", None),
        OtherGpu("amd", "AMD Radeon RX 7600 XT", "discrete", "d3d12", 16368),
        OtherGpu("intel", "Intel(R) Arc(TM) A770 Graphics", "discrete", "d3d12", 16384),
    )


def test_windows_with_a_driver() -> None:
    """nvcuda.dll is asked in the child; NVML's version is the driver's."""

    def probe(argv: object, environ: Mapping[str, str]) -> ChildResult:
        del argv, environ
        device = {"name": "NVIDIA GeForce RTX 5070", "major": 12, "minor": 0, "uuid": "aa"}
        answer = {"load_error": None, "loaded": r"C:\Windows\System32\nvcuda.dll", "version": 13000, "init": 0}
        return ChildResult(0, stdout=json.dumps({**answer, "devices": [device], "nvml": {"driver": "581.80"}}))

    host = FakeHost(facts=WINDOWS, files=NVCUDA, programs={SHELL: powershell, "/usr/bin/python3": probe})
    nvidia = survey(host).nvidia
    assert (nvidia.status, nvidia.driver, nvidia.kernel_driver, nvidia.cuda) == ("ok", "581.80", "581.80", "13.0")


def test_windows_without_hardware_starts_nothing() -> None:
    """A CPU plan does not wait for PowerShell."""
    host = FakeHost(
        facts=WINDOWS, main_memory=(32 << 30, 20 << 30), environ={"PROCESSOR_IDENTIFIER": "AMD64 Family 25"}
    )
    machine = survey(host, hardware=False)
    assert (host.started, machine.cpu.memory_mib, machine.cpu.name) == ([], 32768, "AMD64 Family 25")


def test_windows_crash_codes_are_named() -> None:
    """An access violation in the driver is said as Windows writes it."""
    crash = ChildResult(0xC0000005)
    host = FakeHost(facts=WINDOWS, files=NVCUDA, programs={"/usr/bin/python3": lambda *_: crash})
    assert "0xC0000005" in (survey(host).nvidia.error or "")


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"cpu": 3}'])
def test_windows_that_does_not_answer(text: str) -> None:
    """What PowerShell does not tell stays unknown."""
    seen = parse_windows(text, Cpu(name="known"))
    assert (seen.cpu.name, seen.other_gpus, seen.nvidia_gpus) == ("known", None, 0)


DISPLAYS = {
    "SPDisplaysDataType": [
        {
            "_name": "Apple M2 Pro",
            "spdisplays_mtlgpufamilysupport": "spdisplays_metal3",
            "spdisplays_vendor": "sppci_vendor_Apple",
            "sppci_bus": "spdisplays_builtin",
            "sppci_model": "Apple M2 Pro",
        },
        {
            "_name": "Radeon Pro 580",
            "spdisplays_metal": "spdisplays_supported",
            "spdisplays_vendor": "AMD (0x1002)",
            "spdisplays_vram": "8 GB",
            "sppci_bus": "spdisplays_pcie_device",
            "sppci_model": "Radeon Pro 580",
        },
    ]
}


def test_macos() -> None:
    """Version, processor, memory and the Metal GPUs."""
    programs = {
        "/usr/sbin/sysctl": ("hw.memsize: 17179869184\nhw.physicalcpu: 10\nmachdep.cpu.brand_string: Apple M2 Pro\n"),
        "/usr/bin/vm_stat": (
            "Mach Virtual Memory Statistics: (page size of 16384 bytes)\n"
            "Pages free:                                6400.\nPages active:   9999.\nPages inactive:  6400.\n"
        ),
        "/usr/sbin/system_profiler": json.dumps(DISPLAYS),
    }
    plist = "<dict>\n\t<key>ProductVersion</key>\n\t<string>14.6.1</string>\n</dict>"
    host = FakeHost(
        facts=MACOS,
        files={"/System/Library/CoreServices/SystemVersion.plist": plist},
        programs={name: printing(text) for name, text in programs.items()},
    )
    machine = survey(host)
    assert (machine.platform.os, machine.platform.arch, machine.platform.os_version) == ("macos", "aarch64", "14.6.1")
    assert machine.cpu == Cpu("Apple M2 Pro", 10, 16384, 200, None)
    assert machine.nvidia.status == "none"
    assert machine.other_gpus == (
        OtherGpu("apple", "Apple M2 Pro", "integrated", "metal", None),
        OtherGpu("amd", "Radeon Pro 580", "discrete", "metal", 8192),
    )


def test_macos_that_does_not_answer() -> None:
    """A tool that is missing leaves its part unknown."""
    assert parse_macos_displays("") is None
    assert survey(FakeHost(facts=MACOS)).other_gpus is None


@pytest.mark.parametrize(
    ("plist", "release", "version"),
    [
        ("<key>ProductVersion</key><string>10.16</string>", "23.6.0", "14.6"),
        (None, "25.1.0", "26.1"),
        (None, "19.6.0", None),
        (None, None, None),
    ],
)
def test_macos_versions_of_last_resort(plist: str | None, release: str | None, version: str | None) -> None:
    """Programs built for an old SDK are shown 10.16; the kernel knows better."""
    assert parse_macos_version(plist, release) == version
