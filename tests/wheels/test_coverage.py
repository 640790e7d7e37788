"""What GPU code amounts to: stubs and a few kernels do not count, and PTX names the driver it needs."""

from __future__ import annotations

import pytest

from imprint_dev.coverage import CoverageError, cuda_libraries, judge
from imprint_dev.fatbin import Code


def spread(target: str, containers: int, size: int, kind: str = "native", isa: str | None = None) -> list[Code]:
    """Return one entry of `size` bytes in each of so many containers."""
    return [Code(kind, target, number, size, isa) for number in range(containers)]


def test_targets_are_listed_in_the_order_of_capability() -> None:
    code = spread("12.0a", 100, 10) + spread("7.5", 40, 10) + spread("9.0a", 100, 10)
    assert judge(code).native == ("7.5", "9.0a", "12.0a")


def test_the_stubs_of_1_31_1_for_windows_do_not_count() -> None:
    """The numbers of that wheel: 290 empty entries for 9.0a, and PTX for 38 kernels of 607."""
    code = (
        spread("7.5", 217, 880_335)
        + spread("8.0", 308, 1_129_854)
        + spread("9.0a", 290, 1_736)
        + spread("12.0a", 279, 1_419_600)
        + spread("12.0", 38, 3_225_198, "ptx", "9.0")
        + spread("8.0", 607, 0)
    )
    found = judge(code)
    assert found.native == ("7.5", "8.0", "12.0a")
    assert found.ptx == ()
    assert set(found.too_little) == {("native", "9.0a"), ("ptx", "12.0")}


@pytest.mark.parametrize(("isa", "cuda"), [("8.2", "12.2"), ("8.5", "12.5"), ("8.7", "12.8"), ("9.0", "13.0")])
def test_ptx_needs_a_driver_that_knows_its_language(isa: str, cuda: str) -> None:
    assert judge(spread("9.0", 10, 10, "ptx", isa)).ptx == (("9.0", cuda),)


def test_the_newest_language_of_a_target_decides() -> None:
    code = spread("9.0", 10, 10, "ptx", "8.2") + spread("9.0", 10, 10, "ptx", "8.7")
    assert judge(code).ptx == (("9.0", "12.8"),)


def test_ptx_for_one_capability_alone_is_not_listed() -> None:
    assert judge(spread("9.0a", 10, 10, "ptx", "8.7")).ptx == ()


def test_a_language_that_is_not_in_the_table_is_an_error() -> None:
    with pytest.raises(CoverageError, match=r"99\.0"):
        judge(spread("9.0", 10, 10, "ptx", "99.0"))


def test_no_code_is_no_coverage() -> None:
    found = judge([])
    assert (found.native, found.ptx, found.too_little) == ((), (), {})


def test_only_cuda_s_own_libraries_are_named() -> None:
    names = ["libcublas.so.12", "libc.so.6", "libcuda.so.1", "cudnn64_9.dll", "KERNEL32.dll", "libcurand.so.10"]
    names += ["onnxruntime_providers_shared.dll", "cublasLt64_13.dll", "MSVCP140.dll", "libcustom.so.1"]
    assert cuda_libraries(names) == (
        "cublasLt64_13.dll",
        "cudnn64_9.dll",
        "libcublas.so.12",
        "libcuda.so.1",
        "libcurand.so.10",
    )
