"""The rewriting changes only what it knows to be the same, moves large weights, and is deterministic."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding import onnx_bytes
from imprint.embedding.graph import (
    Constant,
    GraphError,
    Node,
    rewrite,
    scale_after_lookup,
    without_nan_guards,
    without_unused,
)

TABLE = [
    Node("Cast", ("table",), ("float",), (b"to-float",)),
    Node("Mul", ("float", "scale"), ("words",)),
    Node("Gather", ("words", "ids"), ("found",)),
]
ROWS = {"table": Constant((30, 4), is_zero=False), "scale": Constant((30, 1), is_zero=False)}


def test_a_lookup_in_a_scaled_table_scales_what_it_found() -> None:
    nodes = without_unused(scale_after_lookup(TABLE, ROWS), {"found"})
    assert [(node.op, node.inputs) for node in nodes] == [
        ("Gather", ("table", "ids")),
        ("Gather", ("scale", "ids")),
        ("Cast", ("found/rows",)),
        ("Mul", ("found/float", "found/scales")),
    ]
    assert nodes[2].attributes == (b"to-float",)
    assert nodes[-1].outputs == ("found",)


@pytest.mark.parametrize(
    "constants",
    [
        {**ROWS, "scale": Constant((1, 4), is_zero=False)},
        {**ROWS, "scale": Constant((), is_zero=False)},
        {**ROWS, "table": Constant((30,), is_zero=False)},
        {"scale": ROWS["scale"]},
        {"table": ROWS["table"]},
    ],
    ids=["a scale a column", "one scale", "a flat table", "a computed table", "a computed scale"],
)
def test_any_other_table_is_left_as_it_is(constants: dict[str, Constant]) -> None:
    assert scale_after_lookup(TABLE, constants) == TABLE


def test_a_lookup_along_another_axis_is_left_as_it_is() -> None:
    axis = onnx_bytes.message(1, "axis") + onnx_bytes.number(3, 1)
    nodes = [*TABLE[:2], Node("Gather", ("words", "ids"), ("found",), (axis,))]
    assert scale_after_lookup(nodes, ROWS) == nodes


def guarded(made_by: str) -> list[Node]:
    return [
        Node(made_by, ("scores",), ("soft",)),
        Node("IsNaN", ("soft",), ("bad",)),
        Node("Where", ("bad", "zero", "soft"), ("safe",)),
        Node("MatMul", ("safe", "values"), ("out",)),
    ]


ZERO = {"zero": Constant((), is_zero=True)}


def test_a_nan_guard_after_a_softmax_goes_away() -> None:
    nodes = without_unused(without_nan_guards(guarded("Softmax"), ZERO), {"out"})
    assert [(node.op, node.inputs) for node in nodes] == [("Softmax", ("scores",)), ("MatMul", ("soft", "values"))]


def test_a_guard_of_anything_else_stays() -> None:
    assert without_nan_guards(guarded("Log"), ZERO) == guarded("Log")
    assert without_nan_guards(guarded("Softmax"), {"zero": Constant((), is_zero=False)}) == guarded("Softmax")


def whole_model(rows: int = 40_000) -> bytes:
    nodes = [
        onnx_bytes.node("Cast", ["table"], "float", to=1),
        onnx_bytes.node("Mul", ["float", "scale"], "words"),
        onnx_bytes.node("Gather", ["words", "ids"], "found", axis=0),
    ]
    tensors = [
        onnx_bytes.tensor("table", (rows, 4), 3, bytes(index % 251 for index in range(rows * 4))),
        onnx_bytes.tensor("scale", (rows, 1), 1, struct.pack(f"<{rows}f", *range(rows))),
        onnx_bytes.tensor("small", (2,), 1, struct.pack("<2f", 1, 2)),
    ]
    return onnx_bytes.model(nodes, tensors, ["found"])


def test_large_weights_move_to_the_second_file_on_page_boundaries() -> None:
    graph, weights = rewrite(whole_model(), "weights.bin")
    assert weights[:160_000] == bytes(index % 251 for index in range(160_000))
    assert weights[163_840:] == struct.pack("<40000f", *range(40_000))
    assert len(graph) < 1000
    for place in (b"weights.bin", b"163840", b"160000", struct.pack("<2f", 1, 2)):
        assert place in graph


def test_rewriting_is_deterministic_and_settles() -> None:
    first = rewrite(whole_model(), "w")
    assert rewrite(whole_model(), "w") == first
    assert rewrite(first[0], "w") == (first[0], b"")


@given(st.binary(max_size=60))
def test_what_is_no_model_is_refused_or_copied_but_never_crashes(junk: bytes) -> None:
    with contextlib.suppress(GraphError, UnicodeDecodeError):
        rewrite(junk, "w")


@given(st.integers(0, 400))
def test_a_model_cut_short_is_refused(cut: int) -> None:
    whole = whole_model(3)
    if 2 < cut < len(whole) - 12:
        with pytest.raises(GraphError):
            rewrite(whole[:cut], "w")
