"""Which of several comes first, down to the last word that tells two apart, and what is said of the others."""

from __future__ import annotations

from itertools import permutations

import pytest

from imprint.planning.driver import read_driver
from imprint.planning.fingerprints import failed_check
from imprint.planning.gates import Fit, fit_of, preference
from imprint.planning.model import Device, Gpu, OtherGpu
from imprint.planning.rule import _portable_preference, decide
from imprint.values import replace
from planning.conftest import TABLE
from planning.test_portable import RADEON
from planning.test_rule import AMPERE, AUTO, failed, machine

LATER = Gpu(0, "GPU-l", "a later chip", "12.1")
"""It needs PTX of a build after the first, so any GPU with native code comes before it."""


def test_a_planned_gpu_build_is_complete() -> None:
    found = decide(AUTO, machine(AMPERE), TABLE, (), None)
    assert (found.build, found.lock, found.version) == ("cuda13", "cuda13.txt", "1.31.1")
    assert found.device == Device(0, "GPU-a", "RTX 3060")


@pytest.mark.parametrize(
    "best_first",
    [
        (replace(RADEON, memory_mib=1), replace(RADEON, memory_mib=9999, kind=None)),
        (
            replace(RADEON, memory_mib=2),
            replace(RADEON, memory_mib=1, name="A"),
            replace(RADEON, memory_mib=None, name=""),
        ),
        (replace(RADEON, name=None, vendor="b"), replace(RADEON, name="A"), replace(RADEON, name="b", vendor="A")),
        (replace(RADEON, vendor=None), replace(RADEON, vendor="A"), replace(RADEON, vendor="b", api="d3d12")),
        (replace(RADEON, api=None), replace(RADEON, api="METAL"), replace(RADEON, api="d3d12")),
    ],
)
def test_other_gpus_have_one_order(best_first: tuple[OtherGpu, ...]) -> None:
    assert {tuple(sorted(some, key=_portable_preference)) for some in permutations(best_first)} == {best_first}


@pytest.mark.parametrize(
    "best_first",
    [
        (AMPERE, replace(AMPERE, integrated=True, memory_mib=99999)),
        (replace(AMPERE, memory_mib=1), replace(AMPERE, memory_mib=None, index=None)),
        (replace(AMPERE, memory_mib=1, index=1), replace(AMPERE, memory_mib=None)),
        (replace(AMPERE, uuid="b"), replace(AMPERE, index=1, uuid="A"), replace(AMPERE, index=None, uuid=None)),
        (replace(AMPERE, uuid=None, name="b"), replace(AMPERE, uuid="A", name="A"), replace(AMPERE, uuid="b")),
        (replace(AMPERE, name=None, compute_capability="9"), replace(AMPERE, name="A"), replace(AMPERE, name="b")),
        (replace(AMPERE, compute_capability=None), AMPERE, replace(AMPERE, compute_capability="X.Y")),
    ],
)
def test_gpus_have_one_order(best_first: tuple[Gpu, ...]) -> None:
    assert {tuple(sorted(some, key=preference)) for some in permutations(best_first)} == {best_first}


def test_of_failed_checks_that_weigh_the_same_the_first_by_name_and_time_counts() -> None:
    seen = machine(AMPERE)
    fit = fit_of(TABLE.cuda[0], seen, "auto", read_driver(seen, TABLE))
    assert isinstance(fit, Fit)
    for first, second in (((None, "A"), ("A", None)), (("A", None), ("A", "A")), (("A", "b"), ("b", "A"))):
        verdicts = [failed("cuda13", AMPERE, seen, *one) for one in (first, second)]
        assert failed_check(fit, seen, verdicts, TABLE) == verdicts[0]
        assert failed_check(fit, seen, verdicts[::-1], TABLE) == verdicts[0]


def test_no_remark_on_a_gpu_whose_memory_is_as_unknown() -> None:
    unknown = replace(AMPERE, index=1, memory_mib=None)
    assert decide(AUTO, machine(LATER, unknown), TABLE, (), None).notes == ()


def test_any_memory_is_more_than_unknown() -> None:
    unknown = replace(AMPERE, index=1, memory_mib=None)
    (note,) = decide(AUTO, machine(replace(LATER, memory_mib=1), unknown), TABLE, (), None).notes
    assert note.code == "smaller-gpu"


def test_a_discrete_gpu_with_less_memory_hides_no_larger_one_from_the_remark() -> None:
    discrete = replace(LATER, memory_mib=2048)
    shared = replace(LATER, index=1, uuid="GPU-s", name="a shared one", memory_mib=16384, integrated=True)
    chosen = replace(AMPERE, index=2, memory_mib=8192, integrated=True)
    (note,) = decide(AUTO, machine(discrete, shared, chosen), TABLE, (), None).notes
    assert note.reason.startswith("a shared one has more memory")
