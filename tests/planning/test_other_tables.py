"""What the rule says of builds that today's table does not have: no toolkit, another order, other floors."""

from __future__ import annotations

from imprint.planning.gates import CHECK, platform_steps
from imprint.planning.model import Gpu, Machine
from imprint.planning.rule import decide
from imprint.planning.selection import NOT_REACHED, Question, select
from imprint.planning.versions import parse_cuda
from imprint.values import replace
from planning.conftest import TABLE
from planning.test_rule import AMPERE, AUTO, machine

CUDA13, CUDA12 = TABLE.cuda[0], TABLE.cuda[2]
BLACKWELL = Gpu(0, "GPU-b", "RTX 5080", "12.0")


def test_a_build_of_unknown_toolkit_says_what_driver_it_needs() -> None:
    table = replace(TABLE, builds=(replace(CUDA13, toolkit=None), TABLE.cpu))
    plan = decide(AUTO, machine(AMPERE, driver="470.1"), table, (), None)
    assert plan.reason == "driver 470.1 is too old: CUDA needs driver 580"


def test_a_driver_of_no_newer_cuda_is_no_hint() -> None:
    # PTX of the first build waits behind native code of the second, which known drivers of CUDA 13.0 are too old for.
    builds = (CUDA12, replace(CUDA13, driver_floors={"linux": "590"}), TABLE.cpu)
    plan = decide(AUTO, machine(BLACKWELL, driver=None, cuda="13.0"), replace(TABLE, builds=builds), (), None)
    assert (plan.build, plan.code) == ("cuda13", "gpu-native")
    assert [(one.code, one.hint) for one in plan.refused] == [("not-reached", None)]
    older = decide(AUTO, machine(BLACKWELL, driver=None, cuda="12.4"), replace(TABLE, builds=builds), (), None)
    assert [one.hint is None for one in older.refused] == [False, True]


def test_ptx_that_the_driver_is_too_old_for_says_so() -> None:
    plan = decide(AUTO, machine(Gpu(0, "GPU-b", "B300", "10.3"), driver="560.35.03"), TABLE, (), None)
    assert plan.reason == (
        "B300 (compute capability 10.3) with driver 560.35.03 needs a driver for CUDA 12.8 to compile the CUDA 12 "
        "build's code"
    )


def test_ptx_waits_behind_native_code_of_a_later_build_and_says_so() -> None:
    seen = machine(Gpu(0, "GPU-p", "Tesla P40", "6.1"), Gpu(1, "GPU-l", "a later chip", "12.1"))
    waiting = select(Question(AUTO, seen, TABLE, ())).refused[1]
    assert (waiting.build.name, waiting.gate, waiting.code) == ("cuda13-1.28", CHECK, NOT_REACHED)
    assert waiting.seen == "the CUDA 12 build has native code for a GPU here"


def test_each_step_judges_a_machine_of_which_nothing_is_known() -> None:
    steps = platform_steps(TABLE.cpu, Machine())
    passed = [step.gate for step in steps if step.passes(TABLE.cpu.wheels[0])]
    assert passed == ["os", "libc", "libc", "libc"]


def test_a_bare_cuda_major_is_its_minor_0() -> None:
    assert parse_cuda("12") == (12, 0)
    assert parse_cuda("12.4.1") == (12, 4)
