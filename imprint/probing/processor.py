"""Reads the processor and the main memory, within the limits that the control groups of this process set."""

from __future__ import annotations

import re
from collections.abc import Iterator

from imprint.planning.model import Cpu
from imprint.probing.host import Host

FLAGS: dict[str, str] = {
    "sse4_1": "sse4_1",
    "avx": "avx",
    "f16c": "f16c",
    "fma": "fma",
    "avx2": "avx2",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512_vnni": "avx512_vnni",
    "avx_vnni": "avx_vnni",
    "avx512_bf16": "avx512_bf16",
    "avx512_fp16": "avx512_fp16",
    "amx_tile": "amx_tile",
    "amx_int8": "amx_int8",
    "asimd": "asimd",
    "asimdhp": "asimdhp",
    "asimddp": "asimddp",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "sve": "sve",
    "sve2": "sve2",
    "sme": "sme",
}
"""The instruction sets that decide which kernels ONNX Runtime's MLAS picks, by the names of Linux's /proc/cpuinfo."""

_HEAD = 16 * 1024
"""Enough of /proc/cpuinfo for one processor; the kernel makes the rest only when it is read, at a cost per core."""

_MIB = 1024 * 1024


def survey_cpu(host: Host, system: str | None) -> Cpu:
    """Return the processor of a Linux machine in full; elsewhere what is known without a child process."""
    if system == "linux":
        info = host.read_text("/proc/cpuinfo", _HEAD) or ""
        total, free = _linux_memory(host)
        return Cpu(parse_cpu_name(info), count_cores(host), total, free, parse_cpu_flags(info))
    memory = host.memory()
    total, free = (memory[0] // _MIB, memory[1] // _MIB) if memory else (None, None)
    return Cpu(host.environ.get("PROCESSOR_IDENTIFIER"), None, total, free, None)


def usable_cores(host: Host) -> int | None:
    """Return how many physical cores this process may keep busy: within its affinity and its CPU quota, at least 1.

    None where that cannot be told (anything but Linux). Source of the quota: cgroup v2 `cpu.max`, v1 `cpu.cfs_*`.
    """
    cores = count_cores(host, host.cpu_affinity())
    quotas = [quota for quota in _quotas(host) if quota > 0]
    if cores is None:
        return None
    # A quota of 1.5 processors feeds two threads better than one.
    return max(1, min([cores, *(-int(-quota // 1) for quota in quotas)]))


def count_cores(host: Host, within: frozenset[int] | None = None) -> int | None:
    """Return the physical cores that are online (and have a logical processor in `within`), or None."""
    root = "/sys/devices/system/cpu"
    online = parse_cpu_list(host.read_text(f"{root}/online") or "")
    cores = set()
    for cpu in online:
        siblings = host.read_text(f"{root}/cpu{cpu}/topology/thread_siblings_list")
        if siblings is None:
            return None
        if within is None or cpu in within:
            cores.add(siblings.strip())
    return len(cores) or None


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Return the numbers of a list like `0-3,8`; empty when it is malformed."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not found:
            return ()
        numbers.extend(range(int(found[1]), int(found[2] or found[1]) + 1))
    return tuple(numbers)


def parse_cpu_name(info: str) -> str | None:
    """Return the name of the first processor of /proc/cpuinfo; ARM kernels give none."""
    found = re.search(r"^(?:model name|cpu model|cpu)\s*:\s*(\S.*)$", info, re.MULTILINE)
    return " ".join(found[1].split()) if found else None


def parse_cpu_flags(info: str) -> tuple[str, ...] | None:
    """Return the flags of FLAGS that the first processor of /proc/cpuinfo has, in the order of FLAGS."""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", info, re.MULTILINE)
    if not found:
        return None
    seen = set(found[1].split())
    return tuple(name for flag, name in FLAGS.items() if flag in seen)


def parse_meminfo(text: str) -> tuple[int | None, int | None]:
    """Return (total, available) in bytes of /proc/meminfo."""
    values = {name: int(kib) * 1024 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}
    return values.get("MemTotal"), values.get("MemAvailable", values.get("MemFree"))


def _linux_memory(host: Host) -> tuple[int | None, int | None]:
    total, free = parse_meminfo(host.read_text("/proc/meminfo") or "")
    for folder, limit_name, usage_name, reclaimable in (
        *((path, "memory.max", "memory.current", "inactive_file") for path in _groups(host, "")),
        *(
            (path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            for path in _groups(host, "memory")
        ),
    ):
        limit = _number(host.read_text(f"{folder}/{limit_name}"))
        if limit is None or total is None or limit >= total:
            continue  # `max`, or v1's huge number that means no limit
        usage = _number(host.read_text(f"{folder}/{usage_name}")) or 0
        cached = re.search(rf"^{reclaimable} (\d+)$", host.read_text(f"{folder}/memory.stat") or "", re.MULTILINE)
        room = max(limit - max(usage - int(cached[1] if cached else 0), 0), 0)
        total, free = limit, min(room, free if free is not None else room)
    return (None if total is None else total // _MIB, None if free is None else free // _MIB)


def _quotas(host: Host) -> Iterator[float]:
    for folder in _groups(host, ""):
        words = (host.read_text(f"{folder}/cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
            yield int(words[0]) / int(words[1])
    for folder in _groups(host, "cpu"):
        quota = _number(host.read_text(f"{folder}/cpu.cfs_quota_us"))
        period = _number(host.read_text(f"{folder}/cpu.cfs_period_us"))
        if quota and period:
            yield quota / period


def _groups(host: Host, controller: str) -> Iterator[str]:
    """Yield the folders of this process's control group and its ancestors; `controller` empty means version 2.

    In a container the path may be the host's and lead nowhere; the mount's root is then the container's own group.
    """
    for line in (host.read_text("/proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if (number == "0" and not names) if not controller else controller in names.split(","):
            roots = (
                ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if not controller else (f"/sys/fs/cgroup/{controller}",)
            )
            parts = [part for part in path.split("/") if part]
            for root in roots:
                for depth in range(len(parts), -1, -1):
                    yield "/".join([root, *parts[:depth]])


def _number(text: str | None) -> int | None:
    value = (text or "").strip()
    return int(value) if value.isdigit() else None
