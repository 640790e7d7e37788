"""Single sentences of the rule that a golden plan alone would not pin down."""

from __future__ import annotations

from typing import Any

import pytest

from imprint.planning.builds import Ptx
from imprint.planning.fingerprints import fingerprint_of
from imprint.planning.model import (
    Gpu,
    Installed,
    Libc,
    Machine,
    Nvidia,
    OtherGpu,
    Plan,
    Platform,
    Python,
    Request,
    Verdict,
)
from imprint.planning.rule import decide
from imprint.values import replace
from planning.conftest import TABLE

LINUX = Platform("linux", "x86_64", Libc("glibc", "2.35"))
AMPERE = Gpu(0, "GPU-a", "RTX 3060", "8.6", 12288)
AUTO = Request("auto")


def machine(*gpus: Gpu, driver: str | None = "580.65.06", cuda: str | None = None) -> Machine:
    return Machine(platform=LINUX, python=Python("3.12.4"), nvidia=Nvidia("ok", driver, cuda=cuda, gpus=gpus))


def failed(build: str, gpu: Gpu, seen: Machine, kind: str | None = "conv-failed", time: str | None = None) -> Verdict:
    return Verdict(build, "failed", kind, time, fingerprint_of(build, gpu, seen, TABLE))


def codes(plan: Plan) -> dict[str, str]:
    return {one.build: one.code for one in plan.refused}


def test_every_build_after_a_failed_check_is_not_reached() -> None:
    seen = machine(AMPERE)
    plan = decide(
        AUTO, seen, TABLE, (failed("cuda13-1.28", AMPERE, seen), failed("cuda13", AMPERE, seen, "no-kernel")), None
    )
    assert codes(plan) == {
        "cuda13": "check-failed",
        "cuda13-1.28": "check-failed",
        "cuda12": "not-reached",
        # Python 3.12 would refuse this one, had it been reached.
        "cuda12-py310": "not-reached",
    }
    assert plan.code == "check-failed"
    assert "(no-kernel)" in plan.reason


def test_builds_before_a_failed_check_keep_their_own_reason() -> None:
    pascal = Gpu(0, "GPU-p", "Tesla P40", "6.1", 24576)
    seen = machine(pascal)
    plan = decide(AUTO, seen, TABLE, (failed("cuda12", pascal, seen, None),), None)
    assert codes(plan) == {
        "cuda13": "compute-capability-unsupported",
        "cuda13-1.28": "compute-capability-unsupported",
        "cuda12": "check-failed",
        "cuda12-py310": "not-reached",
    }
    assert plan.reason == (
        "the check of the CUDA 12 build failed on Tesla P40 (compute capability 6.1) with driver 580.65.06"
    )


def test_ptx_that_waited_behind_a_failed_native_check_is_not_reached() -> None:
    pascal, later = Gpu(0, "GPU-p", "Tesla P40", "6.1"), Gpu(1, "GPU-l", "a later chip", "12.1")
    seen = machine(pascal, later)
    plan = decide(AUTO, seen, TABLE, (failed("cuda12", pascal, seen),), None)
    assert codes(plan)["cuda13-1.28"] == "not-reached"
    assert plan.refused[1].reason == "not tried, since the check of the CUDA 12 build failed"
    skipped = decide(AUTO, seen, TABLE, (failed("cuda12", pascal, seen, "no-kernel"),), None)
    assert (skipped.build, skipped.code) == ("cuda13-1.28", "gpu-jit")
    # It was tried and refused, so it is listed although it comes later in the order.
    assert codes(skipped) == {"cuda13": "compute-capability-unsupported", "cuda12": "check-failed"}
    assert skipped.notes == ()


def test_a_failed_check_says_when_and_how() -> None:
    seen = machine(AMPERE)
    plan = decide(AUTO, seen, TABLE, (failed("cuda13", AMPERE, seen, "crashed", "2026-11-01T10:00:00Z"),), None)
    assert plan.reason == (
        "the check of the CUDA 13 build failed (crashed, 2026-11-01T10:00:00Z) on RTX 3060 (compute capability 8.6) "
        "with driver 580.65.06"
    )


def test_a_failed_check_says_what_it_met() -> None:
    seen = machine(AMPERE)
    verdict = replace(failed("cuda13", AMPERE, seen, "library-missing"), detail="libcublas.so.13 was not found")
    reason = decide(AUTO, seen, TABLE, (verdict,), None).reason
    assert reason.startswith(
        "the check of the CUDA 13 build failed (library-missing: libcublas.so.13 was not found) on "
    )


def test_of_two_verdicts_the_one_that_ends_the_search_counts() -> None:
    seen = machine(AMPERE)
    both = (failed("cuda13", AMPERE, seen, "no-kernel"), failed("cuda13", AMPERE, seen, "conv-failed"))
    for verdicts in (both, both[::-1]):
        assert decide(AUTO, seen, TABLE, verdicts, None).build == "cpu"


@pytest.mark.parametrize(
    "name", ["build", "lock", "gpu_uuid", "gpu_name", "compute_capability", "driver", "python", "check"]
)
def test_a_verdict_counts_only_when_every_field_is_known_and_equal(name: str) -> None:
    seen = machine(AMPERE)
    verdict = failed("cuda13", AMPERE, seen)
    assert decide(AUTO, seen, TABLE, (verdict,), None).code == "check-failed"
    for other in (None, "another"):
        changed = replace(verdict, fingerprint=replace(verdict.fingerprint, **{name: other}))
        assert decide(AUTO, seen, TABLE, (changed,), None).code == "gpu-native"


def test_an_equally_large_gpu_is_no_remark() -> None:
    later = Gpu(0, "GPU-l", "a later chip", "12.1", 12288)
    assert decide(AUTO, machine(later, replace(AMPERE, index=1)), TABLE, (), None).notes == ()


def test_the_remark_names_the_best_of_several() -> None:
    volta, larger = Gpu(1, "GPU-v", "Tesla V100", "7.0", 16384), Gpu(2, "GPU-w", "Tesla V100S", "7.0", 32768)
    (note,) = decide(AUTO, machine(volta, larger, AMPERE), TABLE, (), None).notes
    assert note.reason.startswith("Tesla V100S has more memory")


def test_of_equal_verdicts_the_reason_does_not_depend_on_their_order() -> None:
    seen = machine(AMPERE)
    kinds = [failed("cuda13", AMPERE, seen, kind, time) for kind in (None, "crashed") for time in (None, "now")]
    for one in kinds:
        for other in kinds:
            ways = {decide(AUTO, seen, TABLE, pair, None).reason for pair in ((one, other), (other, one))}
            assert len(ways) == 1


def test_a_verdict_that_contradicts_itself_counts_for_nothing() -> None:
    seen = machine(AMPERE)
    other = replace(failed("cuda13", AMPERE, seen), build="cuda12")
    assert decide(AUTO, seen, TABLE, (other,), None).build == "cuda13"


def test_nothing_is_freed_where_nothing_is_installed() -> None:
    plan = decide(AUTO, machine(AMPERE), TABLE, (), None)
    assert plan.pending
    assert plan.free_bytes_after_prune == 0
    assert (plan.download_bytes or 0) > 0
    done = decide(AUTO, machine(AMPERE), TABLE, (), Installed("cuda13", "1.31.1"))
    assert (done.download_bytes, done.installed_bytes, done.free_bytes_after_prune) == (0, 0, 0)


def test_a_gpu_of_an_unknown_vendor_is_not_nvidias() -> None:
    seen = replace(machine(), nvidia=Nvidia("none"), other_gpus=(OtherGpu(name="an odd card"),))
    assert decide(AUTO, seen, TABLE, (), None).code == "vendor-not-nvidia"


def test_the_lower_memory_of_a_later_build_is_no_remark() -> None:
    small = Gpu(1, "GPU-p", "GTX 1060", "6.1", 6144)
    assert decide(AUTO, machine(AMPERE, small), TABLE, (), None).notes == ()


def test_a_larger_gpu_that_runs_nowhere_is_no_remark() -> None:
    larger = Gpu(1, "GPU-k", "Tesla K80", "3.7", 24576)
    assert decide(AUTO, machine(AMPERE, larger), TABLE, (), None).notes == ()


def test_a_larger_integrated_gpu_is_no_remark() -> None:
    larger = Gpu(1, "GPU-i", "integrated", "6.1", 65536, integrated=True)
    assert decide(AUTO, machine(AMPERE, larger), TABLE, (), None).notes == ()


def test_a_gpu_chosen_by_hand_gets_no_remark() -> None:
    larger = Gpu(1, "GPU-v", "Tesla V100", "7.0", 32768)
    (note,) = decide(AUTO, machine(AMPERE, larger), TABLE, (), None).notes
    assert note.reason == (
        "Tesla V100 has more memory, but would run with native code of the CUDA 12 build, which RTX 3060 precedes"
    )
    assert decide(Request("gpu", "0"), machine(AMPERE, larger), TABLE, (), None).notes == ()


def test_a_larger_gpu_that_would_need_ptx_is_a_remark() -> None:
    larger = Gpu(1, "GPU-l", "a later chip", "12.1", 32768)
    (note,) = decide(AUTO, machine(AMPERE, larger), TABLE, (), None).notes
    assert "would run with PTX of the CUDA 13 (1.28) build" in note.reason


def test_no_remark_about_a_build_whose_check_failed() -> None:
    larger = Gpu(1, "GPU-v", "Tesla V100", "7.0", 32768)
    seen = machine(replace(AMPERE, compute_capability="12.1"), larger)
    verdict = failed("cuda12", larger, seen, "no-kernel")
    plan = decide(AUTO, seen, TABLE, (verdict,), None)
    assert (plan.code, plan.notes) == ("gpu-jit", ())


def test_refused_builds_have_the_hint_that_would_plan_them() -> None:
    plan = decide(AUTO, machine(Gpu(0, "GPU-b", "RTX 5080", "12.0"), driver="570.86.10"), TABLE, (), None)
    assert plan.code == "gpu-jit"
    assert plan.hint is None
    assert [one.hint for one in plan.refused] == [
        "install NVIDIA driver 580 or newer: the CUDA 13 build then runs with native code",
        None,
    ]


def test_a_plan_with_native_code_says_what_it_stands_on() -> None:
    assert decide(AUTO, machine(AMPERE), TABLE, (), None).reason == (
        "RTX 3060 (compute capability 8.6) has native code in the CUDA 13 build, driver 580.65.06 supports CUDA 13.0"
    )


def test_a_plan_through_ptx_says_that_the_first_run_is_slow() -> None:
    plan = decide(AUTO, machine(Gpu(0, "GPU-b", "B300", "10.3")), TABLE, (), None)
    assert plan.reason == (
        "B300 (compute capability 10.3) runs PTX of the CUDA 12 build, compiled on the first run, which is slow, "
        "and driver 580.65.06 supports CUDA 13.0"
    )


def test_without_a_build_everything_about_one_is_null() -> None:
    for request in (AUTO, Request("cpu")):
        plan = decide(request, replace(machine(AMPERE), python=Python("3.9.1")), TABLE, (), None)
        assert (plan.build, plan.lock, plan.version, plan.device) == (None, None, None, None)
        assert plan.hint == "the nearest supported choice is Python 3.10"
        assert [one.build for one in plan.refused] == [build.name for build in TABLE.cuda]


def test_nobody_asked_for_a_gpu_is_said_of_every_build_without_a_hint() -> None:
    plan = decide(Request("cpu"), machine(AMPERE, driver="470.1"), TABLE, (), None)
    assert {(one.code, one.reason, one.hint) for one in plan.refused} == {("device-cpu", "model.device is cpu", None)}
    assert plan.hint is None


def test_the_driver_that_is_installed_is_no_hint() -> None:
    # An older libcuda hides what driver 570 could do; installing 570 once more would change nothing.
    plan = decide(AUTO, machine(Gpu(0, "GPU-b", "B300", "10.3"), driver="570", cuda="12.4"), TABLE, (), None)
    assert plan.code == "ptx-needs-newer-driver"
    assert (plan.hint or "").startswith("install NVIDIA driver 580 or newer")


def test_choices_in_a_hint_begin_with_the_best() -> None:
    small = Gpu(1, None, "small", "8.6", 2048)
    kepler = Gpu(2, "GPU-k", "GT 730", "3.5")
    plan = decide(Request("gpu", "2"), machine(small, kepler, AMPERE), TABLE, (), None)
    assert plan.hint == "choose another GPU: `--gpu-device 0` (RTX 3060, GPU-a) or `--gpu-device 1` (small)"


def test_a_hint_for_ptx_says_so() -> None:
    plan = decide(AUTO, machine(Gpu(0, "GPU-b", "B300", "10.3"), driver="560.35.03"), TABLE, (), None)
    assert plan.hint == (
        "install NVIDIA driver 570 or newer: the CUDA 12 build then runs with code the driver compiles first"
    )


def test_a_driver_hint_comes_before_another_gpu_unless_a_check_failed() -> None:
    ampere, later = replace(AMPERE, index=1), Gpu(0, "GPU-b", "B200", "10.0")
    seen = machine(later, ampere, driver="565.57.01")
    asked = decide(Request("gpu", "0"), seen, TABLE, (), None)
    assert asked.code == "ptx-needs-newer-driver"
    assert (asked.hint or "").startswith("install NVIDIA driver 580")
    known = machine(AMPERE, replace(AMPERE, index=1, uuid="GPU-c"), driver="570.133.07")
    checked = decide(AUTO, known, TABLE, (failed("cuda12", AMPERE, known),), None)
    assert checked.hint == "choose another GPU: `--gpu-device 1` (RTX 3060, GPU-c)"


def test_the_hint_of_a_failed_check_may_be_a_driver() -> None:
    seen = machine(AMPERE, driver="570.133.07")
    plan = decide(AUTO, seen, TABLE, (failed("cuda12", AMPERE, seen),), None)
    assert (plan.hint or "").startswith("install NVIDIA driver 580")


def test_a_gpu_without_an_index_is_named_by_its_uuid() -> None:
    seen = machine(Gpu(None, "GPU-x", "nameless index", "8.6"), Gpu(None, None, "nothing to call it", "8.6"))
    plan = decide(Request("gpu", "7"), seen, TABLE, (), None)
    assert plan.hint == "choose another GPU: `--gpu-device GPU-x` (nameless index)"
    assert "without an index (nameless index, GPU-x)" in plan.reason


def test_a_newer_driver_is_judged_by_cuda_where_its_version_is_unknown() -> None:
    plan = decide(AUTO, machine(AMPERE, driver=None, cuda="12.0"), TABLE, (), None)
    assert plan.build == "cuda12"
    assert (plan.refused[0].hint or "").startswith("install NVIDIA driver 580")
    pascal = decide(AUTO, machine(Gpu(0, "GPU-b", "B300", "10.3"), driver=None, cuda="12.8"), TABLE, (), None)
    assert [one.hint for one in pascal.refused] == [None, None]


def test_the_first_ptx_that_asks_least_of_the_driver_is_used() -> None:
    wheel = replace(TABLE.cuda[2].wheels[0], native=(), ptx=(Ptx((9, 0), (12, 8)), Ptx((8, 0), (12, 2))))
    assert wheel.ptx_for((9, 0)) == Ptx((8, 0), (12, 2))
    assert wheel.how_it_runs((9, 0), (12, 2)) == "ptx"
    assert wheel.ptx_for((7, 5)) is None


def test_an_installed_gpu_build_of_unknown_version_is_kept_at_the_known_one() -> None:
    away = replace(machine(), nvidia=Nvidia("no-device"))
    plan = decide(AUTO, away, TABLE, (), Installed("cuda12"))
    assert (plan.build, plan.version, plan.lock, plan.pending) == ("cuda12", "1.26.0", "cuda12.txt", False)
    assert [one.build for one in plan.refused] == ["cuda13", "cuda13-1.28"]
    assert [note.reason for note in plan.notes] == ["the installed CUDA 12 build stays until the driver can be read"]


def test_what_is_installed_and_unknown_makes_nothing_provisional() -> None:
    away = replace(machine(), nvidia=Nvidia("no-device"))
    for build in ("cpu", "webgpu", "something"):
        plan = decide(AUTO, away, TABLE, (), Installed(build, "1"))
        assert (plan.build, plan.provisional) == ("cpu", False)


def test_reasons_name_what_was_seen() -> None:
    def reason(nvidia: Nvidia, **environment: str) -> str:
        return decide(AUTO, replace(machine(), nvidia=nvidia, environment=environment), TABLE, (), None).reason

    assert reason(Nvidia("error", error="cuInit\n999")) == (
        "the NVIDIA driver could not be read (it answered with an error: cuInit 999)"
    )
    assert reason(Nvidia("timeout")) == "the NVIDIA driver could not be read (it did not answer in time)"
    assert reason(Nvidia()) == "the NVIDIA driver could not be read (it was not checked)"
    new: Any = "new word"
    assert reason(Nvidia(new)) == "the NVIDIA driver could not be read (its status is unknown to this version)"
    assert reason(Nvidia("ok", gpus=(AMPERE,))) == (
        "the NVIDIA driver could not be read (neither its version nor its CUDA version is known)"
    )
    assert "libcuda is newer" in reason(Nvidia("compat-unsupported"))
    assert reason(Nvidia("driver-mismatch", "550.107.02", "550.90.07")) == (
        "the NVIDIA driver's libraries and kernel module differ (550.107.02 and 550.90.07), as after an "
        "update without a restart"
    )
    assert "differ, as after" in reason(Nvidia("driver-mismatch", "550.107.02"))
    assert "differ, as after" in reason(Nvidia("driver-mismatch", kernel_driver="550.107.02"))
    assert "libcuda (/compat/libcuda.so.1) is newer" in reason(
        Nvidia("compat-unsupported", libcuda="/compat/libcuda.so.1")
    )
    assert 'CUDA_VISIBLE_DEVICES="0,0" names' in reason(Nvidia("bad-visible-devices"), CUDA_VISIBLE_DEVICES="0,0")
    assert "CUDA_VISIBLE_DEVICES names" in reason(Nvidia("bad-visible-devices"))
    assert 'CUDA_VISIBLE_DEVICES is "-1"' in reason(Nvidia("no-device"), CUDA_VISIBLE_DEVICES="-1")


def test_the_driver_is_named_as_far_as_it_is_known() -> None:
    def reason(driver: str | None, cuda: str | None) -> str:
        return decide(AUTO, machine(AMPERE, driver=driver, cuda=cuda), TABLE, (), None).reason

    assert reason("580.65.06", None).endswith("driver 580.65.06 supports CUDA 13.0")
    assert reason(None, "12.8").endswith("the NVIDIA driver supports CUDA 12.8")
    assert reason(None, "11.4").startswith("an NVIDIA driver for CUDA 11.4 is too old: CUDA 13 needs driver 580")
    assert (
        reason("470.1", None) == "driver 470.1 is too old: CUDA 13 needs driver 580 and CUDA 12 needs driver 525.60.13"
    )


def test_a_long_or_unprintable_name_stays_on_one_line() -> None:
    plan = decide(AUTO, machine(replace(AMPERE, name="a\nb\x1b[31m" + "c" * 500)), TABLE, (), None)
    assert plan.reason.isprintable()
    assert len(plan.reason) < 400


def test_gpus_are_named_without_a_name_too() -> None:
    assert "GPU 0 (compute capability 8.6)" in decide(AUTO, machine(Gpu(0, None, None, "8.6")), TABLE, (), None).reason
    assert "an unnamed GPU" in decide(AUTO, machine(Gpu(None, None, None, "8.6")), TABLE, (), None).reason
    assert "capability unknown" in decide(AUTO, machine(Gpu(0)), TABLE, (), None).reason


def test_gpus_without_code_are_all_named_once() -> None:
    kepler, other = Gpu(0, "GPU-k", "GT 730", "3.5", 2048), Gpu(1, "GPU-o", "Tesla K80", "3.7", 11441)
    plan = decide(AUTO, machine(kepler, replace(kepler, index=2, uuid="GPU-l"), other), TABLE, (), None)
    assert plan.reason == (
        "Tesla K80 (compute capability 3.7) or GT 730 (compute capability 3.5) has no code in the CUDA 13, "
        "CUDA 13 (1.28) or CUDA 12 build"
    )


def test_a_gpu_that_is_not_here_is_told_from_those_that_are() -> None:
    second = Gpu(1, None, "GTX 1060", "6.1", 6144)
    plan = decide(Request("gpu", "GPU-z"), machine(second, AMPERE), TABLE, (), None)
    assert plan.reason == "model.gpu_device is GPU-z, and the GPUs here are 0 (RTX 3060, GPU-a), 1 (GTX 1060)"


def test_the_word_none_names_no_gpu() -> None:
    plan = decide(Request("gpu", "None"), machine(Gpu(None, None, "nameless", "8.6")), TABLE, (), None)
    assert plan.code == "gpu-not-found"


def test_a_known_index_comes_before_an_unknown_one_and_before_the_uuid() -> None:
    unknown, known = replace(AMPERE, index=None, uuid="GPU-0"), replace(AMPERE, index=5, uuid="GPU-1")
    later = replace(AMPERE, index=7, uuid="GPU-00")
    plan = decide(AUTO, machine(unknown, later, known), TABLE, (), None)
    assert plan.device is not None
    assert plan.device.index == 5


def test_cuda_versions_of_other_forms() -> None:
    assert decide(AUTO, machine(AMPERE, driver=None, cuda="13"), TABLE, (), None).build == "cuda13"
    assert decide(AUTO, machine(AMPERE, driver=None, cuda="12.8.1"), TABLE, (), None).build == "cuda12"
    hopper = Gpu(0, "GPU-b", "B300", "10.3")
    assert decide(AUTO, machine(hopper, driver=None, cuda="12"), TABLE, (), None).code == "ptx-needs-newer-driver"
    assert decide(AUTO, machine(AMPERE, driver="N/A", cuda="ERR!"), TABLE, (), None).code == "driver-unreadable"
