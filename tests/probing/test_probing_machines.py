"""Whole machines played through the seam: each differs from the ordinary one in the fact its test is about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from imprint.errors import ImprintError
from imprint.planning.model import Libc, OtherGpu
from imprint.probing.host import ChildResult
from imprint.probing.survey import survey
from support.fake_host import LINUX, FakeHost, Program

CPUINFO = "model name\t: Intel(R) Core(TM) i7\nflags\t\t: fpu sse4_1 avx avx2 fma f16c\n\n"

PLAIN = {
    "/proc/cpuinfo": CPUINFO * 4,
    "/proc/meminfo": "MemTotal:       32768000 kB\nMemFree:        1000 kB\nMemAvailable:   20480000 kB\n",
    "/proc/self/cgroup": "0::/user.slice\n",
    "/proc/1/cgroup": "0::/init.scope\n",
    "/etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n',
    "/sys/devices/system/cpu/online": "0-3\n",
    **{f"/sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": f"{n % 2},{n % 2 + 2}\n" for n in range(4)},
}

LIBRARY = {"/usr/lib/x86_64-linux-gnu/libcuda.so.1": "elf"}
MODULE = {
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.133.07  Fri Mar 14 12:00 2025\n"
}
DEVICE = {"name": "NVIDIA X", "major": 8, "minor": 6, "memory": 16 << 30, "integrated": 0, "pci_bus_id": "0000:01:00.0"}


def pci(address: str, vendor: str, kind: str, driver: str | None = None) -> tuple[dict[str, str], dict[str, str]]:
    root = f"/sys/bus/pci/devices/{address}"
    files = {f"{root}/vendor": f"{vendor}\n", f"{root}/class": f"{kind}\n"}
    if driver is None:
        return files, {}
    return {**files, f"/sys/bus/pci/drivers/{driver}/bind": ""}, {f"{root}/driver": f"/sys/bus/pci/drivers/{driver}"}


def answering(**answer: object) -> dict[str, Program]:
    """Return the program table of a machine whose driver gives this answer to the probe."""

    def probe(argv: Sequence[str], environ: Mapping[str, str]) -> ChildResult:
        del argv, environ
        whole = {"load_error": None, "loaded": "/usr/lib/libcuda.so.1", "init": 0, "devices": [], "nvml": {}, **answer}
        return ChildResult(0, stdout=json.dumps(whole))

    return {"/usr/bin/python3": probe}


def test_an_ordinary_machine_without_a_gpu() -> None:
    """Everything is known, and no process was started."""
    host = FakeHost(files=PLAIN, environ={"CUDA_VISIBLE_DEVICES": "0", "HOME": "/home/me"})
    machine = survey(host)
    platform = machine.platform
    assert (platform.os, platform.arch, platform.libc) == ("linux", "x86_64", Libc("glibc", "2.35"))
    assert (platform.wsl, platform.container, platform.jetson) == (False, False, False)
    assert platform.os_version == "Ubuntu 22.04.5 LTS"
    assert (machine.python.version, machine.python.abi) == ("3.12.4", "cp312")
    assert machine.cpu.name == "Intel(R) Core(TM) i7"
    assert (machine.cpu.physical_cores, machine.cpu.memory_mib, machine.cpu.memory_free_mib) == (2, 32000, 20000)
    assert machine.cpu.flags == ("sse4_1", "avx", "f16c", "fma", "avx2")
    assert (machine.nvidia.status, machine.nvidia.gpus, machine.nvidia.error) == ("none", (), None)
    assert (machine.other_gpus, machine.vulkan.status) == ((), "missing")
    assert (machine.rocm.smi, machine.rocm.kfd_access) == (False, False)
    assert machine.environment == {"CUDA_VISIBLE_DEVICES": "0"}
    assert host.started == []


def test_without_hardware_no_gpu_path_is_touched() -> None:
    """A CPU plan asks for nothing that could say or wake a GPU; the answer says unknown, not none."""
    host = FakeHost(files={**PLAIN, **LIBRARY, **MODULE}, programs=answering(devices=[DEVICE]))
    machine = survey(host, hardware=False)
    assert (machine.nvidia.status, machine.nvidia.gpus, machine.other_gpus) == (None, None, None)
    assert (machine.vulkan.status, machine.rocm.smi, machine.platform.jetson) == (None, None, None)
    assert host.started == []
    gpu_words = ("nvidia", "cuda", "/proc/driver", "drm", "/sys/bus/pci", "dri", "kfd", "vulkan", "ld.so")
    assert [path for path in host.touched if any(word in path for word in gpu_words)] == []


def test_hardware_without_a_driver() -> None:
    """A GPU on the bus with nouveau, or none, for a driver: driver-missing, and again no process."""
    files, links = pci("0000:01:00.0", "0x10de", "0x030000", "nouveau")
    host = FakeHost(files={**PLAIN, **files}, links=links)
    nvidia = survey(host).nvidia
    assert (nvidia.status, nvidia.gpus) == ("driver-missing", ())
    assert "1 NVIDIA GPU" in (nvidia.error or "")
    assert host.started == []


def test_an_nvidia_device_that_is_no_gpu() -> None:
    """The sound half of a card, or an NVIDIA network chip, is no GPU."""
    files, links = pci("0000:01:00.1", "0x10de", "0x040300")
    assert survey(FakeHost(files={**PLAIN, **files}, links=links)).nvidia.status == "none"


def test_a_gpu_lent_to_a_virtual_machine() -> None:
    """A card bound to vfio-pci is not ours: advising a driver would be wrong."""
    files, links = pci("0000:01:00.0", "0x10de", "0x030200", "vfio-pci")
    nvidia = survey(FakeHost(files={**PLAIN, **files}, links=links)).nvidia
    assert nvidia.status == "none"
    assert "vfio" in (nvidia.error or "")


def test_a_container_that_shows_the_hosts_driver() -> None:
    """/proc and /sys are the host's; without libcuda nothing was passed in. The host's version is kept as a fact."""
    nvidia = survey(FakeHost(files={**PLAIN, **MODULE, "/.dockerenv": ""})).nvidia
    assert (nvidia.status, nvidia.kernel_driver) == ("none", "570.133.07")
    files, links = pci("0000:01:00.0", "0x10de", "0x030200", "nvidia")
    machine = survey(FakeHost(files={**PLAIN, **MODULE, **files, "/.dockerenv": ""}, links=links))
    assert (machine.nvidia.status, machine.platform.container) == ("driver-missing", True)


def test_a_loaded_module_without_libraries() -> None:
    """On a machine of its own, a kernel module without libcuda is half a driver."""
    assert survey(FakeHost(files={**PLAIN, **MODULE})).nvidia.status == "driver-missing"


@pytest.mark.parametrize(
    ("file", "environ"),
    [
        ("/.dockerenv", {}),
        ("/run/.containerenv", {}),
        ("/etc/hostname", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}),
        ("/etc/hostname", {"container": "podman"}),
    ],
)
def test_containers(file: str, environ: dict[str, str]) -> None:
    """Any of the usual marks makes it a container."""
    assert survey(FakeHost(files={**PLAIN, file: ""}, environ=environ), hardware=False).platform.container


def test_containers_by_control_group() -> None:
    """Without a mark in the file system the control group's name tells."""
    for group in (
        "12:memory:/docker/0123abc\n",
        "0::/kubepods.slice/kubepods-besteffort.slice/cri-containerd-a.scope\n",
    ):
        files = {**PLAIN, "/proc/1/cgroup": group}
        assert survey(FakeHost(files=files), hardware=False).platform.container, group


def test_wsl_is_no_container() -> None:
    """WSL is called a container by systemd; a plan must not advise to start it with a GPU request."""
    files = {**PLAIN, "/run/systemd/container": "wsl\n"}
    facts = {**LINUX, "release": "5.15.153.1-microsoft-standard-WSL2"}
    platform = survey(FakeHost(files=files, facts=facts, environ={"container": "wsl"}), hardware=False).platform
    assert (platform.wsl, platform.container) == (True, False)


def test_wsl_finds_its_library_outside_the_loaders_path() -> None:
    """WSL's libcuda counts, is asked for last, and NVML's version stands in for the kernel module that is not there."""
    files = {**PLAIN, "/usr/lib/wsl/lib/libcuda.so.1": "elf"}
    facts = {**LINUX, "release": "5.15.153.1-microsoft-standard-WSL2"}
    programs = answering(
        loaded="/usr/lib/wsl/lib/libcuda.so.1", version=13000, devices=[DEVICE], nvml={"init": 0, "driver": "581.80"}
    )
    host = FakeHost(files=files, facts=facts, programs=programs)
    nvidia = survey(host).nvidia
    assert (nvidia.status, nvidia.driver, nvidia.kernel_driver) == ("ok", "581.80", "581.80")
    asked = json.loads(host.started[0][-1])
    assert asked["cuda"] == ["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"]


def test_code_999_in_wsl_is_not_uvm() -> None:
    """There is no nvidia_uvm in WSL; advising to reload it would be wrong."""
    facts = {**LINUX, "release": "5.15.153.1-microsoft-standard-WSL2"}
    host = FakeHost(files={**PLAIN, **LIBRARY}, facts=facts, programs=answering(init=999))
    assert survey(host).nvidia.status == "error"


@pytest.mark.parametrize(
    ("loaded", "status"),
    [
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.575.57.08", "driver-mismatch"),
        ("/usr/local/cuda/compat/libcuda.so.575.57.08", "compat-unsupported"),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.570.133.07", "compat-unsupported"),
    ],
)
def test_code_804_has_two_causes(loaded: str, status: str) -> None:
    """A compat library on a card that may not use it; or an upgrade without a reboot."""
    host = FakeHost(files={**PLAIN, **LIBRARY, **MODULE}, programs=answering(init=804, loaded=loaded))
    assert survey(host).nvidia.status == status


def test_a_library_for_another_architecture() -> None:
    """A 32-bit libcuda alone is no driver for this process."""
    error = "libcuda.so.1: wrong ELF class: ELFCLASS32"
    host = FakeHost(files={**PLAIN, **LIBRARY}, programs=answering(load_error=error, loaded=None))
    assert survey(host).nvidia.status == "none"
    files, links = pci("0000:01:00.0", "0x10de", "0x030000")
    host = FakeHost(files={**PLAIN, **LIBRARY, **files}, links=links, programs=answering(load_error=error, loaded=None))
    assert survey(host).nvidia.status == "driver-missing"


def test_a_library_that_lacks_another() -> None:
    """A container given only half of the driver has a sick driver, not none."""
    error = "libnvidia-ptxjitcompiler.so.1: cannot open shared object file: No such file or directory"
    host = FakeHost(files={**PLAIN, **LIBRARY}, programs=answering(load_error=error, loaded=None))
    nvidia = survey(host).nvidia
    assert (nvidia.status, "ptxjitcompiler" in (nvidia.error or "")) == ("error", True)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{}", '{"nvml": 3, "init": 0}', '{"nvml": {}, "init": 0, "devices": [1]}', "[" * 5000]
)
def test_nonsense_answers(text: str) -> None:
    """Whatever the probe writes, the survey is an answer."""
    host = FakeHost(
        files={**PLAIN, **LIBRARY, **MODULE}, programs={"/usr/bin/python3": lambda *_: ChildResult(0, stdout=text)}
    )
    nvidia = survey(host).nvidia
    assert (nvidia.status, nvidia.driver) == ("error", "570.133.07")


def test_a_process_that_does_not_know_its_interpreter() -> None:
    """An embedded Python cannot start the probe; that is an error with a reason, not an absence."""
    nvidia = survey(FakeHost(files={**PLAIN, **LIBRARY}, executable="")).nvidia
    assert (nvidia.status, "interpreter" in (nvidia.error or "")) == ("error", True)


@pytest.mark.parametrize(
    ("capability", "files", "jetson"),
    [
        ((8, 7), {}, True),
        ((12, 1), {}, False),
        ((9, 9), {"/etc/nv_tegra_release": "# R36"}, True),
        ((9, 9), {"/proc/device-tree/compatible": "nvidia,p3737\0nvidia,tegra234\0"}, True),
    ],
)
def test_jetson(capability: tuple[int, int], files: dict[str, str], jetson: bool) -> None:
    """Tegra's integrated GPU is one; GB10's is not."""
    device = {**DEVICE, "major": capability[0], "minor": capability[1], "integrated": 1}
    library = {"/usr/lib/aarch64-linux-gnu/libcuda.so.1": "elf"}
    facts = {**LINUX, "machine": "aarch64", "loader": "/lib/ld-linux-aarch64.so.1"}
    host = FakeHost(files={**PLAIN, **library, **files}, facts=facts, programs=answering(devices=[device]))
    assert survey(host).platform.jetson is jetson


def test_a_jetson_board_with_a_card_is_none() -> None:
    """What counts is the GPU that CUDA sees, not the board."""
    library = {"/usr/lib/aarch64-linux-gnu/libcuda.so.1": "elf", "/etc/nv_tegra_release": "# R36"}
    facts = {**LINUX, "machine": "aarch64"}
    host = FakeHost(files={**PLAIN, **library}, facts=facts, programs=answering(devices=[DEVICE]))
    assert survey(host).platform.jetson is False


def test_musl_without_a_process() -> None:
    """Alpine's package list gives musl's version."""
    files = {**PLAIN, "/lib/apk/db/installed": "C:Q1\nP:busybox\nV:1.36.1-r29\n\nC:Q2\nP:musl\nV:1.2.5-r0\nA:x86_64\n"}
    facts = {**LINUX, "glibc": None, "loader": "/lib/ld-musl-x86_64.so.1"}
    host = FakeHost(files=files, facts=facts)
    assert survey(host, hardware=False).platform.libc == Libc("musl", "1.2.5")
    assert host.started == []


def test_musl_by_its_loader() -> None:
    """Elsewhere musl's loader says it on stderr, and exits with 1."""
    facts = {**LINUX, "glibc": None, "loader": "/lib/ld-musl-x86_64.so.1"}
    says = ChildResult(1, stderr="musl libc (x86_64)\nVersion 1.2.3\nDynamic Program Loader\n")
    host = FakeHost(files=PLAIN, facts=facts, programs={"/lib/ld-musl-x86_64.so.1": lambda *_: says})
    assert survey(host, hardware=False).platform.libc == Libc("musl", "1.2.3")


def test_a_static_interpreter() -> None:
    """Without a loader of its own an interpreter's libc is what the system has, or unknown."""
    facts = {**LINUX, "glibc": None, "loader": None}
    assert survey(FakeHost(files=PLAIN, facts=facts), hardware=False).platform.libc == Libc()
    files = {**PLAIN, "/lib/ld-musl-x86_64.so.1": "elf"}
    assert survey(FakeHost(files=files, facts=facts), hardware=False).platform.libc == Libc("musl")


def drm(card: str, vendor: str, device: str, **others: str) -> dict[str, str]:
    root = f"/sys/class/drm/{card}"
    files = {"device/vendor": vendor, "device/device": device, "device/class": "0x030000", **others}
    return {f"{root}/{name}": f"{text}\n" for name, text in files.items()}


def other_gpus(
    files: Mapping[str, str],
    links: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[OtherGpu, ...] | None:
    loader = {"/usr/lib/x86_64-linux-gnu/libvulkan.so.1": "elf", "/dev/dri/renderD128": ""}
    host = FakeHost(files={**PLAIN, **loader, **files}, links=links or {}, environ=environ or {})
    return survey(host).other_gpus


def test_an_amd_card() -> None:
    """Name, memory and kind come from files."""
    files = {
        **drm("card1", "0x1002", "0x7480", **{"device/mem_info_vram_total": str(8 << 30)}),
        "/sys/class/drm/card1/device/hwmon/hwmon3/name": "amdgpu",
        "/sys/class/drm/card1-DP-1/status": "connected",
        "/sys/class/drm/renderD128/dev": "226:128",
        "/usr/share/misc/pci.ids": "1001  Kolter\n\t7480  Wrong\n1002  AMD/ATI\n\t7480  Navi 33 [RX 7600]\n\t\t1 2\n",
    }
    assert other_gpus(files) == (OtherGpu("amd", "Navi 33 [RX 7600]", "discrete", "vulkan", 8192),)


def test_an_amd_processors_own_gpu() -> None:
    """A carve-out of main memory is no card's memory."""
    files = {
        **drm("card0", "0x1002", "0x1638", **{"device/mem_info_vram_total": str(512 << 20)}),
        "/sys/class/drm/card0/device/hwmon/hwmon3/in1_label": "vddnb",
    }
    assert other_gpus(files) == (OtherGpu("amd", "amd GPU 1002:1638", "integrated", "vulkan", None),)


def test_intel_gpus() -> None:
    """The root bus has the integrated one; a card sits behind a bridge."""
    files = {
        "/sys/class/drm/card0/lmem_total_bytes": "",
        "/sys/class/drm/card1/lmem_total_bytes": str(16 << 30),
        **{f"/sys/devices/pci/0000:00:02.0/{k}": v for k, v in {"vendor": "0x8086", "device": "0x4680"}.items()},
        **{f"/sys/devices/pci/0000:03:00.0/{k}": v for k, v in {"vendor": "0x8086", "device": "0x56a0"}.items()},
        "/sys/devices/pci/0000:00:02.0/class": "0x030000",
        "/sys/devices/pci/0000:03:00.0/class": "0x030000",
    }
    links = {
        "/sys/class/drm/card0/device": "/sys/devices/pci/0000:00:02.0",
        "/sys/class/drm/card1/device": "/sys/devices/pci/0000:03:00.0",
    }
    assert [(gpu.kind, gpu.memory_mib) for gpu in other_gpus(files, links) or ()] == [
        ("integrated", None),
        ("discrete", 16384),
    ]


def test_screens_that_are_no_gpus() -> None:
    """virtio, QXL, a server's management chip, a screen without a bus, and NVIDIA's own cards are left out."""
    files = {
        **drm("card0", "0x1af4", "0x1050"),
        **drm("card1", "0x1b36", "0x0100"),
        **drm("card2", "0x1a03", "0x2000"),
        **drm("card3", "0x10de", "0x2684"),
        "/sys/class/drm/card4/device/uevent": "DRIVER=simple-framebuffer",
    }
    assert other_gpus(files) == ()


def test_a_card_without_a_render_node() -> None:
    """A container shows the host's card; without its device node no API serves it."""
    host = FakeHost(
        files={**PLAIN, "/usr/lib64/libvulkan.so.1": "elf", "/.dockerenv": "", **drm("card0", "0x1002", "0x7480")}
    )
    assert [gpu.api for gpu in survey(host).other_gpus or ()] == [None]


def test_software_renderers_only_when_allowed() -> None:
    """A software Vulkan driver is no GPU, unless a test says it shall be one."""
    files = {"/opt/icd/vk_swiftshader_icd.json": "{}", "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json": "{}"}
    named = {"VK_DRIVER_FILES": "/opt/icd/vk_swiftshader_icd.json"}
    assert other_gpus(files, environ=named) == ()
    allowed = {"IMPRINT_ALLOW_SOFTWARE_GPU": "1"}
    assert other_gpus(files, environ={**named, **allowed}) == (
        OtherGpu("software", "SwiftShader (software renderer)", "software", "vulkan"),
    )
    assert [gpu.name for gpu in other_gpus(files, environ=allowed) or ()] == ["llvmpipe (software renderer)"]


def test_rocm() -> None:
    """The tool on the path and the right to use the compute device are facts of their own."""
    host = FakeHost(
        files={**PLAIN, "/opt/rocm/bin/rocm-smi": ""}, environ={"PATH": "/usr/bin"}, openable=frozenset({"/dev/kfd"})
    )
    rocm = survey(host).rocm
    assert (rocm.smi, rocm.kfd_access) == (True, True)


def test_library_path_and_loader_cache_count() -> None:
    """The probe looks for libcuda where the loader does: LD_LIBRARY_PATH first, then its cache, never in stubs."""
    cache = "glibc-ld.so.cache1.1\0libcuda.so.1\0/opt/driver/libcuda.so.1\0"
    for files, environ in (
        ({"/etc/ld.so.cache": cache, "/opt/driver/libcuda.so.1": "elf"}, {}),
        ({"/mine/libcuda.so.1": "elf"}, {"LD_LIBRARY_PATH": "/none::/mine"}),
    ):
        host = FakeHost(files={**PLAIN, **files}, environ=environ, programs=answering(devices=[DEVICE]))
        assert survey(host).nvidia.status == "ok"
    for files, environ in (
        ({"/etc/ld.so.cache": cache}, {}),
        ({"/cuda/lib64/stubs/libcuda.so.1": "elf"}, {"LD_LIBRARY_PATH": "/cuda/lib64/stubs"}),
    ):
        host = FakeHost(files={**PLAIN, **files}, environ=environ)
        assert (survey(host).nvidia.status, host.started) == ("none", [])


def test_another_system_is_unknown_not_none() -> None:
    """Of FreeBSD nothing is claimed that was not read."""
    machine = survey(FakeHost(facts={**LINUX, "platform": "freebsd14", "machine": "amd64", "glibc": None}))
    assert (machine.platform.os, machine.platform.arch, machine.nvidia.status) == ("freebsd", "x86_64", None)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (ChildResult(None, not_started="Permission denied"), "could not be started: Permission denied"),
        (ChildResult(-9, timed_out=True), "did not answer within"),
        (ChildResult(2, stderr="Unknown option: -I\ntry -h"), "(exit code 2: Unknown option: -I)"),
        (ChildResult(0, stdout="{}"), "did not answer as a Python"),
        (ChildResult(0, stdout='{"version": "3.7.9"}'), "is Python 3.7.9"),
    ],
)
def test_targets_that_cannot_be_asked(result: ChildResult, words: str) -> None:
    """Each way a named interpreter can fail has its own clear sentence and a hint."""
    host = FakeHost(files={**PLAIN, "/venv/bin/python": ""}, programs={"/venv/bin/python": lambda *_: result})
    with pytest.raises(ImprintError) as caught:
        survey(host, python=Path("/venv/bin/python"))
    assert words in caught.value.message
    assert caught.value.hint
    assert caught.value.specific_code == "interpreter-unusable"


def test_a_target_whose_interpreter_is_gone() -> None:
    """A dangling link says so; a path that never was says that."""
    host = FakeHost(files=PLAIN, links={"/venv/bin/python": "/usr/bin/python3.10"})
    for path, words in (("/venv/bin/python", "is gone"), ("/nowhere/python", "does not exist")):
        with pytest.raises(ImprintError, match=words) as caught:
            survey(host, python=Path(path))
        assert caught.value.specific_code == "interpreter-gone"


@pytest.mark.parametrize(
    ("version", "implementation", "free_threaded", "abi"),
    [
        ("3.13.0", "cpython", True, "cp313t"),
        ("3.15.0a1", "cpython", False, "cp315"),
        ("3.10.14", "pypy", False, "pypy310"),
    ],
)
def test_python_abi(version: str, implementation: str, free_threaded: bool, abi: str) -> None:
    """Free-threaded builds and other implementations are told apart."""
    answer = {**LINUX, "version": version, "implementation": implementation, "free_threaded": free_threaded}
    says = ChildResult(0, stdout=json.dumps(answer))
    host = FakeHost(files={**PLAIN, "/v/python": ""}, programs={"/v/python": lambda *_: says})
    python = survey(host, python=Path("/v/python"), hardware=False).python
    assert (python.version, python.abi) == (version, abi)


@pytest.mark.parametrize("before", ["hello\n", "hello", '{"x": 1}\n', "\x1b[31mhello\n\n"])
def test_an_interpreter_that_prints_before_its_answer_is_understood(before: str) -> None:
    """A wrapper or a startup file may print; the answer stands on the last line."""
    answer = ChildResult(0, stdout=before + "\n" + json.dumps({**LINUX, "version": "3.12.9"}) + "\n")
    host = FakeHost(files={**PLAIN, "/venv/bin/python": ""}, programs={"/venv/bin/python": lambda *_: answer})
    assert survey(host, python=Path("/venv/bin/python")).python.version == "3.12.9"
