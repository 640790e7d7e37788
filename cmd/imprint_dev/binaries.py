"""Reads just enough of ELF and PE files: their sections, and the libraries they want at load time."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path

from imprint_dev.fatbin import Buffer, Code, parse_section

_DYNAMIC = 6
_DT_NEEDED = 1
_PE_IMPORTS, _PE_DELAYED = 1, 13


class BinaryError(ValueError):
    """The file is neither a 64-bit little-endian ELF file nor a 64-bit PE file."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its place in the file, and its address in memory (PE: relative to the image)."""

    name: str
    kind: int
    offset: int
    size: int
    address: int
    link: int = 0


@dataclass(frozen=True, slots=True)
class Library:
    """What a library holds and wants: `needed` at load time, `delayed` at first use (PE only), GPU code."""

    needed: tuple[str, ...]
    delayed: tuple[str, ...]
    code: tuple[Code, ...]


def read_library(path: Path) -> Library:
    """Return what the file at `path` holds and wants. Errors: BinaryError, FatbinError."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return parse_library(data)


def parse_library(data: Buffer) -> Library:
    """Return what a library with these bytes holds and wants. Errors: BinaryError, FatbinError."""
    delayed: tuple[str, ...] = ()
    if data[:4] == b"\x7fELF":
        sections = _elf_sections(data)
        needed = _elf_needed(data, sections)
    elif data[:2] == b"MZ":
        sections = _pe_sections(data)
        needed = _pe_imports(data, sections, _PE_IMPORTS, step=20, name_at=12)
        delayed = _pe_imports(data, sections, _PE_DELAYED, step=32, name_at=4)
    else:
        raise BinaryError("neither an ELF file nor a PE file")
    # PE cuts section names to eight characters.
    fat = [section for section in sections if section.name in {".nv_fatbin", ".nv_fatb", "__nv_relfatbin"}]
    code = [code for section in fat for code in parse_section(data, section.offset, section.offset + section.size)]
    return Library(needed, delayed, tuple(code))


def _elf_sections(data: Buffer) -> list[Section]:
    if data[4:6] != b"\x02\x01":
        raise BinaryError("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQI", data, table + index * size) for index in range(count)]
    strings = rows[names][4]
    return [
        Section(_text(data, strings + name), kind, offset, length, address, link)
        for name, kind, _flags, address, offset, length, link in rows
    ]


def _elf_needed(data: Buffer, sections: list[Section]) -> tuple[str, ...]:
    needed = []
    for section in sections:
        if section.kind != _DYNAMIC:
            continue
        strings = sections[section.link]
        for position in range(section.offset, section.offset + section.size, 16):
            tag, value = struct.unpack_from("<qQ", data, position)
            if tag == _DT_NEEDED:
                needed.append(_text(data, strings.offset + value))
    return tuple(needed)


def _pe_header(data: Buffer) -> int:
    (header,) = struct.unpack_from("<I", data, 60)
    if data[header : header + 4] != b"PE\0\0" or struct.unpack_from("<H", data, header + 24)[0] != 0x20B:
        raise BinaryError("not a 64-bit PE file")
    return int(header)


def _pe_sections(data: Buffer) -> list[Section]:
    header = _pe_header(data)
    count, optional = struct.unpack_from("<H12xH", data, header + 6)
    sections = []
    for index in range(count):
        name, size, address, stored, offset = struct.unpack_from("<8sIIII", data, header + 24 + optional + 40 * index)
        # What is stored is padded to the file's alignment; what is in memory may go beyond it, as zeros.
        sections.append(Section(name.rstrip(b"\0").decode(), 0, offset, min(size, stored), address))
    return sections


def _pe_imports(data: Buffer, sections: list[Section], directory: int, *, step: int, name_at: int) -> tuple[str, ...]:
    header = _pe_header(data)
    (directories,) = struct.unpack_from("<I", data, header + 24 + 108)
    if directory >= directories:
        return ()
    address, _size = struct.unpack_from("<II", data, header + 24 + 112 + 8 * directory)
    if address == 0:
        return ()
    position = _pe_offset(sections, address)
    names = []
    while (name := struct.unpack_from("<I", data, position + name_at)[0]) != 0:
        names.append(_text(data, _pe_offset(sections, name)))
        position += step
    return tuple(names)


def _pe_offset(sections: list[Section], address: int) -> int:
    for section in sections:
        if section.address <= address < section.address + section.size:
            return section.offset + address - section.address
    raise BinaryError(f"no section holds the address {address:#x}")


def _text(data: Buffer, offset: int) -> str:
    end = data.find(b"\0", offset)
    return bytes(data[offset:end]).decode()
