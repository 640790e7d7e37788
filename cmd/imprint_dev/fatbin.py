"""Reads the CUDA fat binaries inside a library: for which GPUs it holds machine code, and which PTX.

NVIDIA documents no format; this one is read off the toolchain's output (headers of 13.0 and 12.x agree) and is
cross-checked with NVIDIA's cuobjdump where that tool can read the file. Only headers are read, so it does not matter
that the code itself is compressed.

A section holds containers one after the other, padded with zeros. A container is a header of 16 bytes (magic,
version, header size, size of what follows) and entries; an entry is a header and a payload, either PTX text or a
cubin, for one architecture.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap

Buffer = bytes | mmap

MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQ IIHHI IIQQQ")
_KINDS = {1: "ptx", 2: "native"}
_EXACT = 0x100000
"""The flag of an `a` target, whose code runs on exactly its capability."""


class FatbinError(ValueError):
    """The bytes are no fat binary of a known form; the message says where."""


@dataclass(frozen=True, slots=True)
class Code:
    """One entry: `kind` native or ptx, `capability` like `9.0` or `9.0a`, the `container` it is in, unpacked size.

    `isa` is the version of the PTX language, None for native code.
    """

    kind: str
    capability: str
    container: int
    size: int
    isa: str | None = None


def parse_section(data: Buffer, start: int, end: int) -> Iterator[Code]:
    """Yield every entry between two offsets. Errors: FatbinError when anything but containers and zeros is there."""
    position = start
    number = 0
    while position < end:
        if end - position >= 4 and struct.unpack_from("<I", data, position)[0] == MAGIC:
            stop = _container_end(data, position, end)
            yield from _entries(data, position + _CONTAINER.size, stop, number)
            position = stop
            number += 1
        elif not any(data[position : min(position + 8, end)]):
            position += 8
        else:
            raise FatbinError(f"neither a container nor padding at offset {position:#x}")


def _container_end(data: Buffer, position: int, end: int) -> int:
    _magic, version, header, size = _CONTAINER.unpack_from(data, position)
    if (version, header) != (1, _CONTAINER.size):
        raise FatbinError(f"container version {version} with a header of {header} bytes at offset {position:#x}")
    stop: int = position + header + size
    if stop > end:
        raise FatbinError(f"the container at offset {position:#x} is longer than its section")
    return stop


def _entries(data: Buffer, position: int, end: int, container: int) -> Iterator[Code]:
    while position < end:
        fields = _ENTRY.unpack_from(data, position)
        kind, _version, header, payload, _packed, _a, minor, major, arch, _b, _c, flags, _d, unpacked = fields
        if kind not in _KINDS or header < _ENTRY.size:
            raise FatbinError(f"entry kind {kind} with a header of {header} bytes at offset {position:#x}")
        suffix = "a" if flags & _EXACT else ""
        yield Code(
            kind=_KINDS[kind],
            capability=f"{arch // 10}.{arch % 10}{suffix}",
            container=container,
            size=unpacked or payload,
            isa=f"{major}.{minor}" if kind == 1 else None,
        )
        position += header + payload
