"""Reads the operating system: name, architecture, C library, version, and whether it is WSL or a container."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from imprint.planning.model import Libc, Platform
from imprint.probing.host import Host

_SYSTEMS = {"linux": "linux", "win32": "windows", "darwin": "macos", "cygwin": "windows"}

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "i386": "i686", "i486": "i686", "i586": "i686"}

_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv", "/run/host/container-manager")

_CONTAINER_GROUPS = re.compile(
    r"/(docker|kubepods|libpod|lxc|containerd|garden|buildkit)\b|[-/](docker|cri-containerd)-"
)

_MUSL_DEADLINE_SECONDS = 5.0


def survey_platform(host: Host, facts: Mapping[str, Any]) -> Platform:
    """Return the platform of the interpreter described by `facts`; `jetson` is left to whoever asks CUDA."""
    system = parse_system(str(facts.get("platform") or ""))
    arch = parse_architecture(facts.get("machine"))
    if system == "linux":
        return Platform(
            os=system,
            arch=arch,
            libc=_libc(host, facts),
            os_version=parse_os_release(host.read_text("/etc/os-release")) or facts.get("release"),
            wsl=is_wsl(host, facts.get("release")),
            container=is_container(host),
        )
    version = facts.get("os_version")
    if system == "macos":
        plist = host.read_text("/System/Library/CoreServices/SystemVersion.plist")
        version = parse_macos_version(plist, facts.get("release"))
    return Platform(os=system, arch=arch, os_version=version, wsl=False, container=False)


def parse_system(platform: str) -> str | None:
    """Return linux, windows or macos for a `sys.platform`; another system keeps its own name, without digits."""
    return _SYSTEMS.get(platform, platform.rstrip("0123456789")) or None


def parse_architecture(machine: object) -> str | None:
    """Return the architecture as Linux's `uname -m` would call it."""
    if not isinstance(machine, str) or not machine:
        return None
    name = machine.lower()
    return _ARCHITECTURES.get(name, name)


def parse_os_release(text: str | None) -> str | None:
    """Return PRETTY_NAME of an os-release(5) file."""
    found = re.search(r"^PRETTY_NAME=(.+)$", text or "", re.MULTILINE)
    return found[1].strip().strip("\"'") or None if found else None


def parse_macos_version(plist: str | None, release: object) -> str | None:
    """Return the macOS version of SystemVersion.plist, else the one a Darwin kernel release implies.

    Programs built for an old SDK are shown 10.16 by every macOS from 11 on; then only the kernel tells.
    Darwin 20 is macOS 11 and so on until 24 is 15; 25 is 26 (developer.apple.com release notes, 2026-11).
    """
    found = re.search(r"<key>ProductVersion</key>\s*<string>([\d.]+)</string>", plist or "")
    if found and not found[1].startswith("10.16"):
        return found[1]
    darwin = re.match(r"(\d+)\.(\d+)", str(release or ""))
    if not darwin or int(darwin[1]) < 20:
        return None
    major = int(darwin[1])
    return f"{major - 9 if major < 25 else major + 1}.{darwin[2]}"


def is_wsl(host: Host, release: object) -> bool:
    """Tell whether this Linux runs inside the Windows Subsystem for Linux, either version."""
    return "microsoft" in str(release or "").lower() or host.exists("/proc/sys/fs/binfmt_misc/WSLInterop")


def is_container(host: Host) -> bool:
    """Tell whether this Linux is a container. systemd calls WSL one as well (`wsl`); here it is none."""
    manager = (host.read_text("/run/systemd/container") or host.environ.get("container", "")).strip()
    if manager and manager != "wsl":
        return True
    if any(host.exists(path) for path in _CONTAINER_FILES) or "KUBERNETES_SERVICE_HOST" in host.environ:
        return True
    return any(_CONTAINER_GROUPS.search(host.read_text(path) or "") for path in ("/proc/1/cgroup", "/proc/self/cgroup"))


def parse_musl_version(text: str) -> str | None:
    """Return the version that musl's loader prints when it is run without a program."""
    found = re.search(r"musl libc.*?^Version (\d+\.\d+(?:\.\d+)?)", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else None


def _libc(host: Host, facts: Mapping[str, Any]) -> Libc:
    loader = facts.get("loader")
    musl = loader if isinstance(loader, str) and "ld-musl" in loader else None
    if musl is None and facts.get("glibc"):
        return Libc("glibc", str(facts["glibc"]))
    if musl is None and isinstance(loader, str) and "ld-linux" in loader:
        return Libc("glibc")
    if musl is None:
        # A static executable names no loader; a system that has only musl's tells which world this is.
        names = host.list_dir("/lib") or ()
        if not any(name.startswith("ld-musl-") for name in names):
            return Libc()
        return Libc("musl")
    return Libc("musl", _musl_version(host, musl))


def _musl_version(host: Host, loader: str) -> str | None:
    # Alpine's package list says it without a process; musl's loader, run bare, says it everywhere else.
    packages = host.read_text("/lib/apk/db/installed", 4 * 1024 * 1024) or ""
    found = re.search(r"^P:musl\nV:(\d+\.\d+(?:\.\d+)?)", packages, re.MULTILINE)
    if found:
        return found[1]
    return parse_musl_version(host.run([loader], deadline=_MUSL_DEADLINE_SECONDS).stderr)
