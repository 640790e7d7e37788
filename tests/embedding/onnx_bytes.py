"""Writes small ONNX models byte by byte, as a second, independent hand for the tests of the rewriting."""

from __future__ import annotations

from collections.abc import Sequence


def varint(value: int) -> bytes:
    """Return a protobuf varint."""
    out = b""
    while value > 127:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def message(number: int, content: bytes | str) -> bytes:
    """Return a length-delimited field."""
    content = content.encode() if isinstance(content, str) else content
    return varint(number * 8 + 2) + varint(len(content)) + content


def number(field: int, value: int) -> bytes:
    """Return a varint field."""
    return varint(field * 8) + varint(value)


def node(op: str, inputs: Sequence[str], output: str, **integers: int) -> bytes:
    """Return a NodeProto with integer attributes."""
    attributes = [message(1, name) + number(3, value) + number(20, 2) for name, value in integers.items()]
    return (
        b"".join(message(1, name) for name in inputs)
        + message(2, output)
        + message(4, op)
        + b"".join(message(5, attribute) for attribute in attributes)
    )


def tensor(name: str, dims: Sequence[int], kind: int, raw: bytes) -> bytes:
    """Return a TensorProto; kind 1 is float32, 3 int8."""
    return b"".join(number(1, size) for size in dims) + number(2, kind) + message(8, name) + message(9, raw)


def model(nodes: Sequence[bytes], tensors: Sequence[bytes], outputs: Sequence[str]) -> bytes:
    """Return a ModelProto (IR 8, opset 17)."""
    graph = (
        b"".join(message(1, one) for one in nodes)
        + b"".join(message(5, one) for one in tensors)
        + b"".join(message(12, message(1, name)) for name in outputs)
    )
    return number(1, 8) + message(7, graph) + message(8, message(1, "") + number(2, 17))
