"""Says where the configured model really runs: shares of nodes and time, and which operations stayed on the CPU.

The model runs in the target, in the worker's own session with its own settings, under ONNX Runtime's profiler; the
judgement is pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from imprint.embedding.client import START_SECONDS, Settings, worker_arguments, worker_environment
from imprint.last_words import what_ended_it
from imprint.probing.host import ChildResult
from imprint.runtime.check.causes import cause_in, plain
from imprint.runtime.check.children import ask_child
from imprint.runtime.check.result import CPU, CUDA, OnCpu, Placement, Share

SMALL = 1 << 16
"""Bytes; between two orders of the worker's rows.

With the few short texts of the measurement, shapes, indices and masks stay below; activations do not.
"""

_SHAPES = "ONNX Runtime keeps the arithmetic of shapes and indices on the CPU, where it is quicker"
_MASKS = "it makes a mask or an index out of shapes, which are on the CPU"
_COPIES = "it is the copy between the devices"
NORMAL: Mapping[str, str] = {
    **dict.fromkeys(("Shape", "Size", "Squeeze", "Unsqueeze", "Gather", "Slice", "Concat", "Split", "Cast"), _SHAPES),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Neg", "Identity", "ReduceProd"), _SHAPES),
    **dict.fromkeys(("Range", "ConstantOfShape", "Expand", "Reshape", "Transpose", "Tile", "GatherND"), _MASKS),
    **dict.fromkeys(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Not"), _MASKS),
    **dict.fromkeys(("Where", "CumSum", "NonZero", "Trilu"), _MASKS),
    **dict.fromkeys(("MemcpyFromHost", "MemcpyToHost"), _COPIES),
}
"""Operations that belong on the CPU while their outputs are small, and why.

ONNX Runtime itself moves what follows from shapes to the CPU (core/framework/fallback_cpu_capability.cc; its issue
17930 has the maintainers' word), and operations that make indices follow. Read 2026-11-29.
"""

_INTEGERS = "it computes with int8, for which the CUDA provider has no kernels; use a float model on a GPU"
_HEAVY = "this is the model's own work, and the GPU should do it"
_LARGE = "it moves whole tensors, which belong on the GPU"
NOT_NORMAL: Mapping[str, str] = dict.fromkeys(
    (
        *("MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "DynamicQuantizeLinear", "QLinearMatMul"),
        *("ConvInteger", "QLinearConv", "QAttention", "QGemm", "QEmbedLayerNormalization"),
    ),
    _INTEGERS,
)


def measure(settings: Settings, model: str, *, deadline: float = START_SECONDS) -> Placement:
    """Run the model of `settings` in its target on a few texts and return where it ran; never raises for what it does.

    Kernels are waited for one by one, or the time of each would not be its own.
    """
    environ = worker_environment(settings) | {"CUDA_LAUNCH_BLOCKING": "1"}
    asked = CPU if settings.gpu is None else CUDA
    return judge(model, asked, *ask_child(worker_arguments(settings, "placement"), environ, deadline))


def judge(model: str, asked: str, ended: ChildResult, facts: Mapping[str, Any]) -> Placement:
    """Return what the measurement's end and the facts that it told amount to."""
    provider = facts.get("provider")
    rows = [row for row in facts.get("operations") or () if _is_row(row)]
    provider = provider if isinstance(provider, str) else None
    error = _error(facts, ended)
    if error is not None:
        return Placement(model, False, provider, error, {}, ())
    return Placement(model, provider == asked, provider, None, shares(rows), on_cpu(rows, asked))


def shares(rows: Sequence[Mapping[str, Any]]) -> dict[str, Share]:
    """Return nodes, share of nodes and share of time of each provider, the one with most nodes first.

    Copies between devices are in, under the provider that made them. A share is None where there is nothing to share.
    """
    nodes = sum(row["nodes"] for row in rows)
    time = sum(row["microseconds"] for row in rows)
    names = {row["provider"]: sum(one["nodes"] for one in rows if one["provider"] == row["provider"]) for row in rows}
    return {
        name: Share(
            count,
            round(count / nodes, 4) if nodes else None,
            round(sum(row["microseconds"] for row in rows if row["provider"] == name) / time, 4) if time else None,
        )
        for name, count in sorted(names.items(), key=lambda item: (-item[1], item[0]))
    }


def on_cpu(rows: Sequence[Mapping[str, Any]], asked: str) -> tuple[OnCpu, ...]:
    """Return each operation that ran on the CPU, its nodes, whether that is normal, and why; the most nodes first.

    An operation can be there twice: some of its nodes belong on the CPU, others do not.
    """
    counts: dict[tuple[str, bool, str], int] = {}
    for row in rows:
        if row["provider"] == CPU:
            normal, reason = (True, "the CPU was asked for") if asked == CPU else _judge_op(row)
            key = (row["op"], normal, reason)
            counts[key] = counts.get(key, 0) + row["nodes"]
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(OnCpu(op, nodes, normal, reason) for (op, normal, reason), nodes in ordered)


def _judge_op(row: Mapping[str, Any]) -> tuple[bool, str]:
    op = row["op"]
    if op in NOT_NORMAL:
        return False, NOT_NORMAL[op]
    if op not in NORMAL:
        return False, _HEAVY
    if row["largest"] >= SMALL:
        return False, _LARGE
    return True, NORMAL[op]


def _error(facts: Mapping[str, Any], ended: ChildResult) -> str | None:
    if ended.not_started is not None:
        return f"the target's interpreter does not start: {ended.not_started}"
    stage = {"load": "while the model was loaded", "run": "while it ran"}.get(str(facts.get("at")), "at the start")
    if ended.timed_out:
        return f"the model did not answer in time {stage}"
    if ended.returncode is not None and (name := what_ended_it(ended.returncode)) is not None:
        return f"the process was ended by {name} {stage}"
    if facts.get("error"):
        text = str(facts["error"])
        cause = cause_in(text)
        return cause.detail if cause else plain(text)
    if not facts.get("complete"):
        return f"the process ended without an answer {stage}: {plain(ended.stderr) or 'no output'}"
    return None


def _is_row(row: object) -> bool:
    wanted = {"provider": str, "op": str, "nodes": int, "microseconds": int | float, "largest": int}
    return isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in wanted.items())
