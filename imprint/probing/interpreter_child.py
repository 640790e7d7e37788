"""Describes the interpreter that runs this file: one JSON line on standard output, or `describe()` in this process.

It runs inside other people's environments, so it imports nothing of Imprint and only the standard library, and
keeps to syntax that even Python 3.5 reads: an interpreter that is too old must be able to say so.
"""

import os
import sys

# ELF header, e_machine (elf.h of glibc 2.40) -> the name `uname -m` uses.
_ELF_MACHINES = {
    3: "i686",
    21: "ppc64le",
    22: "s390x",
    40: "armv7l",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}


def describe() -> "dict[str, object]":
    """Return a dict of version, implementation, free_threaded, platform, machine, release, os_version, glibc, loader.

    Besides `executable` and `base_prefix`, as `sys` has them. Unknown values are None. `machine` is the interpreter's
    own architecture, not the kernel's; `loader` is the ELF interpreter the executable asks for, which tells musl from
    glibc.
    """
    version = "%d.%d.%d" % tuple(sys.version_info[:3])  # noqa: UP031 - see the module
    level = {"alpha": "a", "beta": "b", "candidate": "rc"}.get(sys.version_info[3])
    if level:
        version += level + str(sys.version_info[4])
    facts = {
        "version": version,
        "implementation": sys.implementation.name,
        "free_threaded": "free-threading" in sys.version or "t" in getattr(sys, "abiflags", ""),
        "executable": sys.executable or None,
        "base_prefix": sys.base_prefix,
        "platform": sys.platform,
        "machine": None,
        "release": None,
        "os_version": None,
        "glibc": None,
        "loader": None,
    }
    if sys.platform == "win32":
        marks = {"(AMD64)": "x86_64", "(ARM64)": "aarch64", "(Intel)": "i686", "(ARM)": "armv7l"}
        facts["machine"] = next((marks[mark] for mark in marks if mark in sys.version), None)
        seen = sys.getwindowsversion()
        facts["os_version"] = "%d.%d.%d" % (seen.major, seen.minor, seen.build)  # noqa: UP031
        return facts
    kernel = os.uname()
    facts["machine"] = kernel.machine
    facts["release"] = kernel.release
    if sys.platform.startswith("linux"):
        machine, facts["loader"] = _read_elf("/proc/self/exe")
        if machine:
            facts["machine"] = machine
        try:
            words = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        except (AttributeError, OSError, ValueError):
            words = []
        if len(words) == 2 and words[0] == "glibc":
            facts["glibc"] = words[1]
    return facts


def _read_elf(path: str) -> "tuple[str | None, str | None]":
    """Return (architecture, ELF interpreter) of an executable, each None when it does not say."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            head = file.read(4096)
    except OSError:
        return None, None
    if len(head) < 64 or head[:4] != b"\x7fELF":
        return None, None

    def number(offset: int, size: int) -> int:
        part = head[offset : offset + size]
        return int.from_bytes(part, "little") if head[5] == 1 else int.from_bytes(part, "big")

    machine = _ELF_MACHINES.get(number(18, 2))
    if machine == "ppc64le" and head[5] != 1:
        machine = "ppc64"
    wide = head[4] == 2
    table, entry, count = (
        (number(32, 8), number(54, 2), number(56, 2)) if wide else (number(28, 4), number(42, 2), number(44, 2))
    )
    for index in range(count):
        at = table + index * entry
        if number(at, 4) == 3:  # PT_INTERP
            start, size = (number(at + 8, 8), number(at + 32, 8)) if wide else (number(at + 4, 4), number(at + 16, 4))
            return machine, head[start : start + size].rstrip(b"\0").decode("ascii", "replace") or None
    return machine, None


if __name__ == "__main__":
    import json

    # On a line of its own, whatever was printed before.
    sys.stdout.write("\n" + json.dumps(describe()) + "\n")
