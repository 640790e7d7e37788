"""Finds where the dynamic loader would find a shared library, without loading it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from imprint.probing.host import Host

_CACHE = "/etc/ld.so.cache"
_CACHE_LIMIT = 4 * 1024 * 1024

_MULTIARCH = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "ppc64le": "powerpc64le-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
    "i686": "i386-linux-gnu",
}


def find_library(host: Host, name: str, arch: str | None, extra: tuple[str, ...] = ()) -> str | None:
    """Return the first file of that name in the order of glibc's loader (ld.so(8)), then in the folders `extra`.

    The order is LD_LIBRARY_PATH, the loader's cache, its standard folders. A toolkit's `stubs` folder is never taken:
    what lies there only satisfies a linker. The file may still turn out to be for another architecture.
    """
    for path in _candidates(host, name, arch, extra):
        if not in_stubs(path) and host.exists(path):
            return path
    return None


def without_stubs(library_path: str) -> str:
    """Return an LD_LIBRARY_PATH without its `stubs` folders."""
    return ":".join(folder for folder in _split(library_path) if not in_stubs(folder + "/"))


def in_stubs(path: str) -> bool:
    """Tell whether a path runs through a folder called `stubs`."""
    return "/stubs/" in path


def _split(library_path: str) -> list[str]:
    # An empty entry means the current folder; a survey must not depend on where it is started.
    return [folder for folder in re.split("[:;]", library_path) if folder]


def _candidates(host: Host, name: str, arch: str | None, extra: tuple[str, ...]) -> Iterator[str]:
    for folder in _split(host.environ.get("LD_LIBRARY_PATH", "")):
        yield f"{folder}/{name}"
    cache = host.read_text(_CACHE, _CACHE_LIMIT) or ""
    yield from re.findall(r"(/[^\0]*/" + re.escape(name) + r")\0", cache)
    triple = _MULTIARCH.get(arch or "")
    for root in ("/lib", "/usr/lib"):
        if triple:
            yield f"{root}/{triple}/{name}"
        yield f"{root}64/{name}"
        yield f"{root}/{name}"
    for folder in extra:
        yield f"{folder}/{name}"
