"""Writes small ELF and PE files with fat binaries and imports, laid out as the toolchains lay them out."""

from __future__ import annotations

import struct
from collections.abc import Sequence

KINDS = {"ptx": 1, "native": 2}


def entry(target: str, *, kind: str = "native", size: int = 64, isa: str = "9.0", header: int = 64) -> bytes:
    """Return one entry: `target` like `9.0a`, `size` its unpacked size; the payload itself is packed to a quarter."""
    capability = target.removesuffix("a").split(".")
    arch = int(capability[0]) * 10 + int(capability[1])
    flags = 0x8011 | (0x100000 if target.endswith("a") else 0)
    major, minor = (int(part) for part in isa.split(".")) if kind == "ptx" else (8, 1)
    payload = max(8, size // 4 // 8 * 8)
    fields = (KINDS[kind], 0x101, header, payload, payload, 0, minor, major, arch, 0, 0, flags, 0, size)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields).ljust(header, b"\0") + b"\xaa" * payload


def container(*entries: bytes, padding: int = 0) -> bytes:
    """Return one fat binary; `padding` zero bytes follow it."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body + b"\0" * padding


def elf(*, fat: bytes = b"", needed: Sequence[str] = ()) -> bytes:
    """Return a 64-bit ELF library with a dynamic section and, when given, a section `.nv_fatbin`."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    dynamic = b"".join(struct.pack("<qQ", 1, strings.index(name.encode() + b"\0")) for name in needed)
    dynamic += struct.pack("<qQ", 0, 0)
    names = b"\0.dynstr\0.dynamic\0.nv_fatbin\0.shstrtab\0"
    parts = [(b".dynstr", 3, strings, 0), (b".dynamic", 6, dynamic, 1)]
    parts += [(b".nv_fatbin", 1, fat, 0)] if fat else []
    parts += [(b".shstrtab", 3, names, 0)]
    body, rows, offset = b"", [b"\0" * 64], 64
    for name, kind, content, link in parts:
        place = names.index(name + b"\0")
        rows.append(struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, offset, len(content), link, 0, 8, 0))
        body += content
        offset += len(content)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, offset, 0, 64, 0, 0, 64, len(rows), len(rows) - 1)
    return head + body + b"".join(rows)


def pe(*, fat: bytes = b"", needed: Sequence[str] = (), delayed: Sequence[str] = ()) -> bytes:
    """Return a 64-bit PE library with import tables and, when given, a section `.nv_fatb`."""
    imports_at, fat_at, base = 0x1000, 0x100000, 0x400
    tables = 20 * (len(needed) + 1) + 32 * (len(delayed) + 1)
    texts = b""

    def place(name: str) -> int:
        nonlocal texts
        where = imports_at + tables + len(texts)
        texts += name.encode() + b"\0"
        return where

    first = b"".join(struct.pack("<IIIII", 1, 0, 0, place(name), 1) for name in needed) + b"\0" * 20
    second = b"".join(struct.pack("<II24x", 1, place(name)) for name in delayed) + b"\0" * 32
    content = first + second + texts
    directories = [(0, 0)] * 16
    directories[1] = (imports_at, len(first))
    directories[13] = (imports_at + len(first), len(second)) if delayed else (0, 0)
    optional = struct.pack("<H106xI", 0x20B, 16) + b"".join(struct.pack("<II", *one) for one in directories)
    sections = [(b".idata", imports_at, base, content)]
    sections += [(b".nv_fatb", fat_at, base + len(content), fat)] if fat else []
    header = b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, len(sections), 0, 0, 0, len(optional), 0) + optional
    for name, address, offset, data in sections:
        header += struct.pack("<8sIIII16x", name, len(data), address, len(data), offset)
    start = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64)
    return (start + header).ljust(base, b"\0") + content + fat
