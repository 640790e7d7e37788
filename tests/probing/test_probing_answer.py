"""Reading the probe's answer is total: whatever JSON arrives, a status of the machine document comes out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.probing.host import ChildResult
from imprint.probing.nvidia import parse_kernel_driver
from imprint.probing.nvidia_answer import Surroundings, parse_cuda_version, read_answer

STATUSES = {
    *("ok", "none", "driver-missing", "no-device", "bad-visible-devices", "driver-mismatch"),
    *("compat-unsupported", "uvm-unavailable", "timeout", "error"),
}

KEYS = ("load_error", "loaded", "version", "init", "init_name", "failed", "devices", "nvml", "driver", "call", "code")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 13000) | st.text(max_size=8) | st.just("/stubs/libcuda.so.1"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


BUILT = "Thu May  2 14:37:44 UTC 2024\nGCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2)\n"


@given(st.dictionaries(st.sampled_from(KEYS), VALUES) | VALUES, st.booleans(), st.none() | st.just("580.65.06"))
def test_any_json_has_a_status(answer: object, flag: bool, kernel: str | None) -> None:
    """No answer, however wrong, is an exception; and only a good one is `ok`."""
    around = Surroundings(kernel_driver=kernel, hardware=flag, uvm=flag)
    nvidia = read_answer(ChildResult(0, stdout=json.dumps(answer)), around)
    assert nvidia.status in STATUSES
    assert (nvidia.status == "ok") <= bool(nvidia.gpus)
    assert nvidia.status == "ok" or nvidia.error


@given(st.integers(-70, 300), st.text(max_size=20), st.booleans())
def test_any_ending_has_a_status(code: int, text: str, flag: bool) -> None:
    """No way a child can end is an exception."""
    nvidia = read_answer(ChildResult(code, stdout=text, stderr=text, timed_out=flag), Surroundings())
    assert nvidia.status == ("timeout" if flag else "error")


@pytest.mark.parametrize(
    ("version", "text"), [(12080, "12.8"), (13000, "13.0"), (9020, "9.2"), (0, None), (None, None), ("12080", None)]
)
def test_cuda_versions(version: object, text: str | None) -> None:
    """Thousands and tens; 0 is what libcuda says when there is no driver."""
    assert parse_cuda_version(version) == text


@pytest.mark.parametrize(
    ("proc", "module", "version"),
    [
        (f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  {BUILT}", None, "580.65.06"),
        (f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  {BUILT}", None, "470.256.02"),
        (None, "550.90.07\n", "550.90.07"),
        ("", "", None),
        (None, None, None),
    ],
)
def test_kernel_driver(proc: str | None, module: str | None, version: str | None) -> None:
    """Both the open and the closed module's line, and the version file of /sys."""
    assert parse_kernel_driver(proc, module) == version
