"""Reading libraries: GPU code and imports out of ELF and PE files, and refusing what is neither."""

from __future__ import annotations

import pytest

from imprint_dev.binaries import BinaryError, parse_library
from imprint_dev.fatbin import Code, FatbinError, parse_section
from wheels.fake_libraries import container, elf, entry, pe

FAT = container(entry("8.6", size=800), entry("9.0a", size=400), padding=24) + container(
    entry("12.0", kind="ptx", isa="9.0", size=1600, header=80)
)
CODE = (
    Code("native", "8.6", 0, 800),
    Code("native", "9.0a", 0, 400),
    Code("ptx", "12.0", 1, 1600, "9.0"),
)


def test_an_elf_library_tells_its_code_and_its_needs() -> None:
    library = parse_library(elf(fat=FAT, needed=["libcublas.so.13", "libc.so.6"]))
    assert library.code == CODE
    assert library.needed == ("libcublas.so.13", "libc.so.6")
    assert library.delayed == ()


def test_a_pe_library_tells_its_code_and_both_kinds_of_import() -> None:
    library = parse_library(pe(fat=FAT, needed=["cublas64_13.dll", "KERNEL32.dll"], delayed=["cudnn64_9.dll"]))
    assert library.code == CODE
    assert library.needed == ("cublas64_13.dll", "KERNEL32.dll")
    assert library.delayed == ("cudnn64_9.dll",)


@pytest.mark.parametrize("data", [elf(), pe()])
def test_a_library_without_gpu_code_is_fine(data: bytes) -> None:
    assert parse_library(data).code == ()
    assert parse_library(data).needed == ()


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh", b"\x7fELF\x01\x01" + b"\0" * 80, b"MZ" + b"\0" * 200])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(BinaryError):
        parse_library(data)


@pytest.mark.parametrize(
    "section",
    [
        b"\0" * 8 + b"garbage!",
        container(entry("8.6"))[:-8],
        container(b"\x07" + entry("8.6")[1:]),
        container(entry("8.6")).replace(b"\x01\x00\x10\x00", b"\x02\x00\x10\x00", 1),
    ],
    ids=["garbage", "cut short", "unknown kind", "unknown version"],
)
def test_a_section_of_unknown_form_is_an_error_and_never_half_read(section: bytes) -> None:
    with pytest.raises(FatbinError):
        list(parse_section(section, 0, len(section)))
