"""Writes an ONNX model of one node as bytes, so that a target need not hold the `onnx` package.

The fields are those of onnx.proto (onnx 1.17); what is written is protobuf, by hand.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

OPSET = 17  # every ONNX Runtime from 1.12 on reads IR 8 with opset 17; newer ones are refused by some builds
IR_VERSION = 8
FLOAT = 1


def varint(value: int) -> bytes:
    """Return a protobuf varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(tag: int, value: int) -> bytes:
    """Return a protobuf field that holds an integer."""
    return varint(tag << 3) + varint(value)


def text(tag: int, value: str | bytes) -> bytes:
    """Return a protobuf field that holds a string, or bytes, or another message."""
    content = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(content)) + content


def value_info(name: str, shape: Sequence[int]) -> bytes:
    """Return a ValueInfoProto for a float tensor of known shape."""
    dims = b"".join(text(1, number(1, size)) for size in shape)
    return text(1, name) + text(2, text(1, number(1, FLOAT) + text(2, dims)))


def float_attribute(name: str, value: float) -> bytes:
    """Return an AttributeProto for a float."""
    return text(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)


def int_attribute(name: str, value: int) -> bytes:
    """Return an AttributeProto for an integer."""
    return text(1, name) + number(3, value) + number(20, 2)


def model(  # noqa: PLR0913 - all but the first three have defaults
    operator: str,
    inputs: Sequence[tuple[str, Sequence[int]]],
    output: tuple[str, Sequence[int]],
    attributes: Sequence[bytes] = (),
    *,
    ir: int = IR_VERSION,
    opset: int = OPSET,
) -> bytes:
    """Return a ModelProto with one node. `inputs` and `output` are pairs of name and shape.

    All operands are inputs, so nothing can be folded away before it runs.
    """
    node = b"".join(text(1, name) for name, _ in inputs) + text(2, output[0]) + text(4, operator)
    node += b"".join(text(5, item) for item in attributes)
    graph = text(1, node) + text(2, "check")
    graph += b"".join(text(11, value_info(name, shape)) for name, shape in inputs)
    graph += text(12, value_info(*output))
    return number(1, ir) + text(7, graph) + text(8, text(1, "") + number(2, opset))
