"""What each state of the NVIDIA driver amounts to, field by field: the code, what was seen, when it is provisional."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from imprint.planning.driver import ALWAYS, IF_INSTALLED, Driver, Unread, read_driver
from imprint.planning.model import Gpu, Machine, Nvidia, OtherGpu, Platform
from imprint.values import replace
from planning.conftest import TABLE

BARE = Platform("linux", "x86_64")
CONTAINER = replace(BARE, container=True)
WSL = replace(BARE, wsl=True)
HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1"}


@pytest.mark.parametrize(
    ("platform", "nvidia", "environment", "expected"),
    [
        (BARE, Nvidia("none"), {}, Unread("no-nvidia-gpu", "", IF_INSTALLED)),
        (CONTAINER, Nvidia("none", kernel_driver="580.1"), {}, Unread("container-no-gpu", "", IF_INSTALLED)),
        (BARE, Nvidia("driver-missing"), {}, Unread("driver-missing", "", IF_INSTALLED)),
        (CONTAINER, Nvidia("driver-missing"), {}, Unread("container-no-gpu", "", IF_INSTALLED)),
        (BARE, Nvidia("no-device"), {}, Unread("no-device", "", IF_INSTALLED)),
        (CONTAINER, Nvidia("no-device"), {}, Unread("container-no-gpu", "", IF_INSTALLED)),
        (BARE, Nvidia("no-device"), HIDDEN, Unread("visible-devices-empty", "-1", IF_INSTALLED)),
        (
            WSL,
            Nvidia("no-device", libcuda="/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
            {},
            Unread("wsl-linux-driver", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", IF_INSTALLED),
        ),
        (BARE, Nvidia("bad-visible-devices"), {}, Unread("visible-devices-invalid", "", IF_INSTALLED)),
        (BARE, Nvidia("driver-mismatch"), {}, Unread("driver-mismatch", "", ALWAYS)),
        (BARE, Nvidia("compat-unsupported"), {}, Unread("compat-unsupported", "", ALWAYS)),
        (BARE, Nvidia("uvm-unavailable"), {}, Unread("uvm-unavailable", "", ALWAYS)),
        (BARE, Nvidia("timeout"), {}, Unread("driver-unreadable", "it did not answer in time", ALWAYS)),
    ],
)
def test_a_driver_that_cannot_be_planned_with(
    platform: Platform, nvidia: Nvidia, environment: Mapping[str, str], expected: Unread
) -> None:
    assert read_driver(Machine(platform=platform, nvidia=nvidia, environment=environment), TABLE) == expected


def test_another_vendors_gpu_is_what_was_seen() -> None:
    seen = Machine(nvidia=Nvidia("none"), other_gpus=(OtherGpu("NVIDIA", "one of theirs"), OtherGpu("amd", "a Radeon")))
    assert read_driver(seen, TABLE) == Unread("vendor-not-nvidia", "a Radeon", IF_INSTALLED)


def test_a_driver_that_answered_is_its_versions() -> None:
    seen = Machine(nvidia=Nvidia("ok", "570.86.10", gpus=(Gpu(0),)))
    assert read_driver(seen, TABLE) == Driver((570, 86, 10), (12, 8))
    assert read_driver(replace(seen, nvidia=replace(seen.nvidia, cuda="12.4")), TABLE) == Driver((570, 86, 10), (12, 4))
