"""How a check and a placement read."""

from __future__ import annotations

from imprint.planning.model import Device
from imprint.runtime.check.result import CPU, CUDA, CheckResult, OnCpu, Placement, Share, Step
from imprint.values import replace
from imprint_cli.render import render_check

STEPS = {"conv": Step(ok=True), "matmul": Step(ok=False, error="it broke")}
ON_CPU = (OnCpu("Shape", 9, True, "shapes stay there"), OnCpu("MatMul", 1, False, "the GPU should do it"))
PLACED = Placement("m", True, CUDA, None, {CUDA: Share(224, 0.77, 0.98), CPU: Share(66, 0.23, 0.02)}, ON_CPU)


def rendered(placed: Placement) -> str:
    device = Device(0, "GPU-1", "NVIDIA L4")
    check = CheckResult("failed", "matmul-failed", CUDA, device, steps=STEPS)
    return render_check(replace(check.report, placement=placed))


def test_a_placement_says_shares_and_what_stayed_on_the_cpu() -> None:
    assert rendered(PLACED).splitlines() == [
        "check: failed (matmul-failed) on NVIDIA L4",
        "  convolution: ok",
        "  matrix product: failed (it broke)",
        "placement of m:",
        "  CUDAExecutionProvider: 224 nodes (77%), 98% of the time",
        "  CPUExecutionProvider: 66 nodes (23%), 2% of the time",
        "  Shape on the CPU, 9 nodes: normal, shapes stay there",
        "  MatMul on the CPU, 1 node: not normal, the GPU should do it",
    ]


def test_a_model_that_runs_where_it_should_in_one_place_needs_no_list() -> None:
    placed = replace(PLACED, providers={CPU: Share(297, 1.0, None)})
    assert rendered(placed).splitlines()[-1] == "  CPUExecutionProvider: 297 nodes (100%)"


def test_a_model_that_does_not_run_says_why() -> None:
    placed = Placement("m", False, CUDA, "memory ran out", {}, ())
    assert rendered(placed).splitlines()[-1] == "placement of m: does not run: memory ran out"
