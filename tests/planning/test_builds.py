"""The shipped table says what the wheels hold, and every GPU wheel has a CPU wheel to fall back on."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from imprint.planning.builds import CPU, CUDA, Build, BuildTable, Native, Ptx, Wheel, parse_builds, parse_native
from planning.conftest import CHECK, DOCUMENT, TABLE

NATIVE = {
    ("cuda13", "linux", "x86_64"): "7.5 8.0 8.6 8.9 9.0a 12.0a",
    ("cuda13", "linux", "aarch64"): "8.9 9.0a 12.0a 12.1a",
    ("cuda13", "windows", "x86_64"): "7.5 8.0 8.6 8.9 12.0a",
    ("cuda13-1.28", "linux", "x86_64"): "7.5 8.0 8.6 8.9 9.0a 10.0a 12.0a",
    ("cuda13-1.28", "windows", "x86_64"): "7.5 8.0 8.6 8.9 9.0a 10.0a 12.0a",
    ("cuda12", "linux", "x86_64"): "6.0 7.0 7.5 8.0 8.6 9.0a",
    ("cuda12", "windows", "x86_64"): "5.2 6.1 7.5 8.6 8.9",
    ("cuda12-py310", "linux", "x86_64"): "6.0 7.0 7.5 8.0 8.6 9.0a",
    ("cuda12-py310", "windows", "x86_64"): "5.2 6.1 7.5 8.6 8.9",
}
PTX = {
    "cuda13": [],
    "cuda13-1.28": [((12, 0), (13, 0))],
    "cuda12": [((9, 0), (12, 8))],
    "cuda12-py310": [((9, 0), (12, 2))],
}


def test_the_order_in_which_builds_are_tried() -> None:
    assert [build.name for build in TABLE.cuda] == ["cuda13", "cuda13-1.28", "cuda12", "cuda12-py310"]
    assert (TABLE.cpu.name, TABLE.portable) == ("cpu", None)


def test_the_machine_code_is_that_of_the_wheels() -> None:
    found = {(build.name, wheel.os, wheel.arch): wheel.native for build in TABLE.cuda for wheel in build.wheels}
    assert found == {key: tuple(map(parse_native, codes.split())) for key, codes in NATIVE.items()}
    for build in TABLE.cuda:
        for wheel in build.wheels:
            assert [(ptx.capability, ptx.toolkit) for ptx in wheel.ptx] == PTX[build.name]


def test_every_gpu_wheel_has_a_cpu_wheel_to_fall_back_on() -> None:
    for wheel in (wheel for build in TABLE.cuda for wheel in build.wheels):
        for abi in wheel.abis:
            assert any(
                abi in cpu.abis
                and (cpu.os, cpu.arch) == (wheel.os, wheel.arch)
                and (cpu.libc or ()) <= (wheel.libc or ())
                for cpu in TABLE.cpu.wheels
            )


def test_cpu_and_cuda13_are_of_one_version() -> None:
    newest = TABLE.cuda[0].wheels[0].version
    assert {wheel.version for wheel in TABLE.cpu.wheels if "cp312" in wheel.abis and wheel.arch == "aarch64"} == {
        newest
    }


@pytest.mark.parametrize("version", ["1.27.0", "1.23.0"])
def test_versions_that_must_never_be_planned_are_not_there(version: str) -> None:
    assert version not in {wheel.version for build in TABLE.builds for wheel in build.wheels}


def test_floors_and_kinds() -> None:
    for build in TABLE.builds:
        assert build.kind in {CPU, CUDA}
        assert (build.kind == CUDA) == bool(build.driver_floors) == (build.toolkit is not None)
        assert all(wheel.libc is None or wheel.libc >= (2, 28) for wheel in build.wheels)


def test_every_lock_of_the_table_is_known_and_digests_are_kept() -> None:
    assert {wheel.lock_digest for build in TABLE.builds for wheel in build.wheels} >= {"digest of cpu-1.23.txt"}
    without = parse_builds(DOCUMENT, {}, CHECK)
    assert {wheel.lock_digest for build in without.builds for wheel in build.wheels} == {None}


def test_a_malformed_table_is_noticed() -> None:
    broken = copy.deepcopy(DOCUMENT)
    broken["last_branch"]["below"] = "7"
    with pytest.raises(ValueError, match="not MAJOR"):
        parse_builds(broken, {}, CHECK)


def test_an_unknown_build_is_not_found() -> None:
    assert TABLE.find("cuda11") is None


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [((524, 99), None), ((525, 60), (12, 0)), ((555, 42), (12, 4)), ((581, 80), (13, 0)), ((9999,), (13, 3))],
)
def test_the_cuda_version_of_a_driver(driver: tuple[int, ...], cuda: tuple[int, int] | None) -> None:
    assert TABLE.cuda_of_driver(driver) == cuda


@pytest.mark.parametrize(
    ("capability", "cuda", "how"),
    [
        ((9, 0), (12, 2), "native"),
        ((8, 9), (12, 2), "native"),
        ((10, 0), (12, 8), "ptx"),
        ((10, 0), (12, 7), None),
        ((10, 0), None, None),
        ((5, 2), (12, 8), None),
        (None, (12, 8), None),
    ],
)
def test_how_a_gpu_runs_the_linux_cuda_12_wheel(
    capability: tuple[int, int] | None, cuda: tuple[int, int] | None, how: str | None
) -> None:
    build = TABLE.find("cuda12")
    assert build is not None
    assert build.wheels[0].how_it_runs(capability, cuda) == how


def test_every_field_of_a_document_is_read() -> None:
    wheel: dict[str, Any] = {
        "os": "linux",
        "arch": "x86_64",
        "libc": "2.28",
        "os_version": "14.0",
        "abis": ["cp312", "cp313t"],
    }
    wheel |= {"native": ["8.6", "9.0a"], "ptx": [{"capability": "9.0", "toolkit": "12.8"}], "links": ["libcuda.so.1"]}
    wheel |= {"download_bytes": 7, "installed_bytes": 9}
    release = {"version": "1.2.3", "lock": "some.txt", "platforms": [wheel]}
    build = {"name": "some", "title": "Some", "kind": "cuda", "toolkit": "12", "driver_floors": {"linux": "525"}}
    document = {
        "builds": [build | {"releases": [release]}],
        "cuda_of_branch": {"580": "13.0", "525": "12.0"},
        "hint_drivers": {"linux": ["580"]},
        "last_branch": {"below": "7.5", "branch": "580"},
    }
    read = Wheel(
        version="1.2.3",
        lock="some.txt",
        lock_digest="abc",
        os="linux",
        arch="x86_64",
        libc=(2, 28),
        os_version=(14, 0),
        abis=("cp312", "cp313t"),
        native=(Native((8, 6), exact=False), Native((9, 0), exact=True)),
        ptx=(Ptx((9, 0), (12, 8)),),
        links=("libcuda.so.1",),
        download_bytes=7,
        installed_bytes=9,
    )
    assert parse_builds(document, {"some.txt": "abc"}, CHECK) == BuildTable(
        builds=(Build("some", "Some", "cuda", (12, 0), {"linux": "525"}, (read,)),),
        cuda_of_branch=((525, (12, 0)), (580, (13, 0))),
        hint_drivers={"linux": ("580",)},
        last_below=(7, 5),
        last_branch="580",
        check_id=CHECK,
    )
