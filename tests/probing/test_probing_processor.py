"""Memory and cores within the limits of control groups, both versions, seen from inside and outside a container."""

from __future__ import annotations

import os

import pytest

from imprint.probing.processor import parse_cpu_flags, parse_cpu_list, parse_cpu_name, survey_cpu, usable_cores
from imprint.probing.this_machine import RealHost
from support.fake_host import FakeHost

GIB = 1024**3
MEMORY = {"/proc/meminfo": "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n"}
CORES = {
    "/sys/devices/system/cpu/online": "0-7\n",
    **{
        f"/sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": f"{n // 2 * 2}-{n // 2 * 2 + 1}\n"
        for n in range(8)
    },
}


def memory(files: dict[str, str]) -> tuple[int | None, int | None]:
    cpu = survey_cpu(FakeHost(files={**MEMORY, **files}), "linux")
    return cpu.memory_mib, cpu.memory_free_mib


def test_without_a_limit() -> None:
    """The machine's own numbers, also where version 1 writes its huge number or version 2 `max`."""
    assert memory({}) == (16384, 8192)
    assert memory({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n"}) == (16384, 8192)
    one = {"/proc/self/cgroup": "4:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}
    assert memory(one) == (16384, 8192)


def test_version_2_limits_of_any_ancestor() -> None:
    """The tightest limit on the way to the root holds; cached files count as free."""
    files = {
        "/proc/self/cgroup": "0::/a/b\n",
        "/sys/fs/cgroup/a/memory.max": str(4 * GIB),
        "/sys/fs/cgroup/a/memory.current": str(3 * GIB),
        "/sys/fs/cgroup/a/memory.stat": f"anon 1\ninactive_file {GIB}\n",
        "/sys/fs/cgroup/a/b/memory.max": "max\n",
    }
    assert memory(files) == (4096, 2048)


def test_version_1_in_a_container() -> None:
    """The path in /proc/self/cgroup is the host's and leads nowhere; the mount's root is the container's own group."""
    files = {
        "/proc/self/cgroup": "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": str(2 * GIB),
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": str(GIB),
        "/sys/fs/cgroup/memory/memory.stat": "total_inactive_file 0\n",
    }
    assert memory(files) == (2048, 1024)


@pytest.mark.parametrize(
    ("files", "affinity", "cores"),
    [
        ({}, None, 4),
        ({}, frozenset({0, 1, 2}), 2),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "150000 100000\n"}, None, 2),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n"}, None, 4),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "10000 100000\n"}, None, 1),
        (
            {
                "/proc/self/cgroup": "3:cpu,cpuacct:/x\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
            3,
        ),
        ({"/proc/self/cgroup": "3:cpu:/\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n"}, None, 4),
    ],
)
def test_usable_cores(files: dict[str, str], affinity: frozenset[int] | None, cores: int) -> None:
    """Hyper-threads count once; affinity and quota narrow it; at least one."""
    assert usable_cores(FakeHost(files={**CORES, **files}, affinity=affinity)) == cores


def test_cores_unknown() -> None:
    """No topology is unknown, not zero."""
    assert usable_cores(FakeHost()) is None


@pytest.mark.parametrize(("text", "numbers"), [("0-2,5\n", (0, 1, 2, 5)), ("0", (0,)), ("", ()), ("a-b", ())])
def test_cpu_lists(text: str, numbers: tuple[int, ...]) -> None:
    """The kernel's list format, and nothing for nonsense."""
    assert parse_cpu_list(text) == numbers


def test_arm() -> None:
    """ARM kernels call flags Features and give no name."""
    info = (
        "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd asimdhp asimddp sve i8mm bf16\nCPU part\t: 0xd4f\n"
    )
    assert parse_cpu_name(info) is None
    assert parse_cpu_flags(info) == ("asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve")
    assert parse_cpu_flags("") is None


@pytest.mark.skipif(not os.path.exists("/proc/cpuinfo"), reason="reads this machine, which must be a Linux one")  # noqa: PTH110
def test_this_machine() -> None:
    """The real files are read as well as the played ones."""
    cpu = survey_cpu(RealHost(), "linux")
    assert cpu.memory_mib
    assert cpu.memory_free_mib is not None
    assert 0 < cpu.memory_free_mib <= cpu.memory_mib
    assert cpu.flags
