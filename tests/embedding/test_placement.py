"""Where a model ran: the profile summed up, the judgement, and what bad ends of the measurement are."""

from pathlib import Path
from typing import Any

import pytest

from imprint.embedding.client import Settings, worker_arguments, worker_environment
from imprint.embedding.placement import NORMAL, NOT_NORMAL, judge, measure, on_cpu, shares
from imprint.inside.placement import summarise
from imprint.probing.host import ChildResult
from imprint.runtime.check.result import CPU, CUDA, Placement, Share


def row(provider: str, op: str, nodes: int = 1, microseconds: float = 10.0, largest: int = 64) -> dict[str, Any]:
    return {"provider": provider, "op": op, "nodes": nodes, "microseconds": microseconds, "largest": largest}


ON_GPU = [
    row(CUDA, "MatMul", 48, 900.0, 400_000),
    row(CPU, "Shape", 9, 5.0),
    row(CPU, "Gather", 6, 5.0),
    row(CUDA, "MemcpyToHost", 1, 90.0),
]


def answer(at: str | None = None, **facts: object) -> dict[str, Any]:
    return {"at": at, "complete": at is None, "error": None, "provider": CUDA, "operations": ON_GPU} | facts


def event(name: str, op: str, start: int, *, provider: str = CUDA, size: int = 64, took: int = 10) -> dict[str, Any]:
    about = {"provider": provider, "op_name": op, "output_size": str(size)}
    return {"cat": "Node", "name": f"{name}_kernel_time", "ts": start, "dur": took, "args": about}


def test_a_profile_is_summed_up_without_its_first_run() -> None:
    run = {"cat": "Session", "name": "model_run", "dur": 100}
    events = [
        {"cat": "Session", "name": "session_initialization", "ts": 0, "dur": 5},
        event("a", "MatMul", 10, took=90),
        {**run, "ts": 5},
        *(event("a", "MatMul", start) for start in (210, 410)),
        *(event("b", "MatMul", start, size=70) for start in (220, 420)),
        *(event("c", "MatMul", start, size=1 << 20) for start in (230, 430)),
        event("d", "Shape", 240, provider=CPU, size=8, took=3),
        {"cat": "Node", "name": "a_fence_before", "ts": 250, "dur": 99, "args": {}},
        {**run, "ts": 205},
        {**run, "ts": 405},
    ]
    assert summarise(events) == [
        row(CPU, "Shape", 1, 1.5, 8),
        row(CUDA, "MatMul", 2, 20.0, 70),
        row(CUDA, "MatMul", 1, 10.0, 1 << 20),
    ]
    assert summarise([]) == []


def test_shares_count_nodes_and_time_of_each_provider() -> None:
    assert shares(ON_GPU) == {
        CUDA: Share(49, round(49 / 64, 4), 0.99),
        CPU: Share(15, round(15 / 64, 4), 0.01),
    }
    assert shares([]) == {}
    assert shares([row(CPU, "Shape", 1, 0.0)])[CPU].share_of_time is None


def test_work_on_shapes_belongs_on_the_cpu_and_the_model_s_own_does_not() -> None:
    told = {(one.op, one.normal) for one in on_cpu(ON_GPU, CUDA)}
    assert told == {("Shape", True), ("Gather", True)}
    heavy = [row(CPU, "MatMul"), row(CPU, "MatMulInteger"), row(CPU, "Add", 3, 1.0, 1 << 20), row(CPU, "Add", 2)]
    judged = [(one.op, one.nodes, one.normal) for one in on_cpu(heavy, CUDA)]
    assert judged == [("Add", 3, False), ("Add", 2, True), ("MatMul", 1, False), ("MatMulInteger", 1, False)]
    assert "int8" in next(one.reason for one in on_cpu(heavy, CUDA) if one.op == "MatMulInteger")
    assert all(one.normal for one in on_cpu(heavy, CPU))
    assert not set(NORMAL) & set(NOT_NORMAL)


def test_a_model_on_the_gpu_runs_with_its_shapes_on_the_cpu() -> None:
    placed = judge("m", CUDA, ChildResult(0), answer())
    assert (placed.runs, placed.misplaced, placed.error) == (True, (), None)
    assert placed.providers[CUDA].nodes == 49


def test_a_model_that_quietly_ran_on_the_cpu_does_not_run() -> None:
    placed = judge("m", CUDA, ChildResult(0), answer(provider=CPU, operations=[row(CPU, "MatMul", 48)]))
    assert (placed.runs, placed.misplaced, placed.error) == (False, ("MatMul",), None)
    assert judge("m", CPU, ChildResult(0), answer(provider=CPU, operations=[row(CPU, "MatMul", 48)])).runs


BAD_ENDS: dict[str, tuple[ChildResult, dict[str, Any], str]] = {
    "cuDNN": (
        ChildResult(0),
        answer("run", error="Fail: CUDNN failure 1001: CUDNN_STATUS_NOT_INITIALIZED ; GPU=0 ; hostname=secret"),
        "CUDNN error 1001: CUDNN_STATUS_NOT_INITIALIZED",
    ),
    "memory": (ChildResult(0), answer("run", error="CUDA failure 2: out of memory ; GPU=0"), "memory ran out"),
    "crash": (ChildResult(-11), answer("run"), "ended by SIGSEGV while it ran"),
    "kill": (ChildResult(-9), answer("load"), "ended by SIGKILL while the model was loaded"),
    "hang": (ChildResult(-9, timed_out=True), answer("run"), "did not answer in time while it ran"),
    "nothing": (ChildResult(1, stderr="ModuleNotFoundError: No module named 'numpy'\n"), {}, "No module named 'numpy'"),
    "garbage": (ChildResult(0, stdout="\x00{\n[1]\n7"), {}, "no output"),
    "no interpreter": (ChildResult(None, not_started="[Errno 2]"), {}, "does not start"),
}


@pytest.mark.parametrize("case", BAD_ENDS)
def test_every_bad_end_has_one_line(case: str) -> None:
    ended, facts, words = BAD_ENDS[case]
    placed = judge("m", CUDA, ended, facts)
    assert not placed.runs
    assert placed.error is not None
    assert words in placed.error
    assert "\n" not in placed.error
    assert "secret" not in placed.error
    assert placed.on_cpu == ()
    assert placed.providers == {}


def test_rows_of_the_wrong_shape_are_left_out() -> None:
    placed = judge("m", CUDA, ChildResult(0), answer(operations=[row(CUDA, "MatMul"), {"op": 1}, 7]))
    assert placed.providers == {CUDA: Share(1, 1.0, 1.0)}


def test_the_measurement_is_the_worker_s_own_session_without_a_toolkit_s_stub(tmp_path: Path) -> None:
    environ = {"LD_LIBRARY_PATH": "/cuda/stubs:/lib"}
    settings = Settings(Path("python"), tmp_path / "m", tmp_path / "t", 8, environ=environ)
    measured, embedding = worker_arguments(settings, "placement"), worker_arguments(settings)
    assert [one for one, other in zip(measured, embedding, strict=True) if one != other] == [
        embedding[4].replace("inside.embed", "inside.placement")
    ]
    assert worker_environment(settings)["LD_LIBRARY_PATH"] == "/lib"
    placed = measure(Settings(tmp_path / "nowhere", tmp_path / "m", tmp_path / "t", 8), "m", deadline=5)
    assert isinstance(placed, Placement)
    assert placed.error is not None
