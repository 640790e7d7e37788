from __future__ import annotations

from typing import Any

from imprint_cli.render import render_check

STEPS = {"conv": {"ok": True, "error": None}, "matmul": {"ok": False, "error": "it broke"}}
SHARES = {
    "CUDAExecutionProvider": {"nodes": 224, "share_of_nodes": 0.77, "share_of_time": 0.98},
    "CPUExecutionProvider": {"nodes": 66, "share_of_nodes": 0.23, "share_of_time": 0.02},
}
ON_CPU = [
    {"op": "Shape", "nodes": 9, "normal": True, "reason": "shapes stay there"},
    {"op": "MatMul", "nodes": 1, "normal": False, "reason": "the GPU should do it"},
]


def data(**placement: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a placement
    seen = {"model": "m", "runs": True, "error": None, "providers": SHARES, "on_cpu": ON_CPU} | placement
    device = {"kind": "gpu", "name": "NVIDIA L4"}
    return {"outcome": "failed", "kind": "matmul-failed", "device": device, "steps": STEPS, "placement": seen}


def test_a_placement_says_shares_and_what_stayed_on_the_cpu() -> None:
    assert render_check(data()).splitlines() == [
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
    cpu = {"CPUExecutionProvider": {"nodes": 297, "share_of_nodes": 1.0, "share_of_time": None}}
    assert render_check(data(providers=cpu)).splitlines()[-1] == "  CPUExecutionProvider: 297 nodes (100%)"


def test_a_model_that_does_not_run_says_why() -> None:
    text = render_check(data(runs=False, error="memory ran out", providers={}, on_cpu=[]))
    assert text.splitlines()[-1] == "placement of m: does not run: memory ran out"
