"""Rewrites an ONNX model file so that it loads in less memory, without changing what it computes. Pure bytes.

Three changes, none of which touches a number:

- a lookup in a table that is stored as int8 and scaled (`Gather(Mul(Cast(table), scale), ids)`) looks up first and
  scales what it found, so that the whole table never becomes float32;
- `Where(IsNaN(x), 0, x)` after a softmax goes away: it guards rows in which everything is masked, and a text always
  has at least its two special tokens;
- large weights move to a second file, which ONNX Runtime maps instead of copying.

The writing is deterministic, so the results have hashes that a catalogue can pin. Only the parts of the format that
are needed are parsed (field numbers: onnx.proto3 of ONNX 1.17); everything else is copied byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_LARGE = 64 * 1024
"""Weights of at least this many bytes move to the second file."""

_ALIGNMENT = 4096
"""Where a weight starts in the second file: on a page, which is what mapping wants."""

# Field numbers of onnx.proto3.
_ATTRIBUTE_INT = 3
_TENSOR_DIMS = 1
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_OUTPUT, _GRAPH_VALUE_INFO = 1, 5, 12, 13
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OP, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 3, 4, 5, 7
_TENSOR_NAME, _TENSOR_RAW, _TENSOR_EXTERNAL, _TENSOR_LOCATION = 8, 9, 13, 14
_VALUE_NAME = 1
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_EXTERNAL = 1


class GraphError(ValueError):
    """The bytes are no ONNX model as we know them."""


class Field(NamedTuple):
    """One field of a protobuf message: its number, its wire type, and its value (int or bytes)."""

    number: int
    wire: int
    value: int | memoryview


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of the graph."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[bytes, ...] = ()
    name: str = ""
    domain: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """What matters here of a weight: its shape, and whether it is one zero."""

    shape: tuple[int, ...]
    is_zero: bool


def rewrite(model: bytes, weights_name: str) -> tuple[bytes, bytes]:
    """Return (graph, weights): the contents of the rewritten model file and of the file `weights_name` beside it.

    Raises GraphError when the bytes are no ONNX model. A model without any of the patterns only has its large weights
    moved.
    """
    parts: list[bytes] = []
    weights = bytearray()
    for field in _fields(memoryview(model)):
        if field.number == _MODEL_GRAPH:
            parts.append(_bytes_field(_MODEL_GRAPH, _rewrite_graph(_as_bytes(field), weights, weights_name)))
        else:
            parts.append(_encode(field))
    return b"".join(parts), bytes(weights)


def _rewrite_graph(graph: memoryview, weights: bytearray, weights_name: str) -> bytes:
    nodes: list[Node] = []
    constants: dict[str, Constant] = {}
    results: set[str] = set()
    rest: list[bytes] = []
    for field in _fields(graph):
        if field.number == _GRAPH_NODE:
            nodes.append(_parse_node(_as_bytes(field)))
        elif field.number == _GRAPH_INITIALIZER:
            tensor = _as_bytes(field)
            constants[_text_of(tensor, _TENSOR_NAME)] = _parse_constant(tensor)
            rest.append(_bytes_field(_GRAPH_INITIALIZER, _move_out(tensor, weights, weights_name)))
        elif field.number != _GRAPH_VALUE_INFO:  # names of values that may be gone; ONNX Runtime infers them anew
            rest.append(_encode(field))
            if field.number == _GRAPH_OUTPUT:
                results.add(_text_of(_as_bytes(field), _VALUE_NAME))
    nodes = without_nan_guards(nodes, constants)
    nodes = without_unused(scale_after_lookup(nodes, constants), results)
    return b"".join(_bytes_field(_GRAPH_NODE, _encode_node(node)) for node in nodes) + b"".join(rest)


def without_nan_guards(nodes: Sequence[Node], constants: Mapping[str, Constant]) -> list[Node]:
    """Return the nodes with `Where(IsNaN(softmax), 0, softmax)` replaced by the softmax itself."""
    made_by = {output: node for node in nodes for output in node.outputs}
    replaced: dict[str, str] = {}
    kept = []
    for node in nodes:
        renamed = _with_inputs(node, replaced)
        test = made_by.get(node.inputs[0]) if node.op == "Where" else None
        if test is not None and test.op == "IsNaN" and test.inputs[0] == node.inputs[2]:
            guarded = made_by.get(test.inputs[0])
            zero = constants.get(node.inputs[1])
            if guarded is not None and guarded.op == "Softmax" and zero is not None and zero.is_zero:
                replaced[node.outputs[0]] = renamed.inputs[2]
                continue
        kept.append(renamed)
    return kept


def scale_after_lookup(nodes: Sequence[Node], constants: Mapping[str, Constant]) -> list[Node]:
    """Return the nodes with each `Gather(Mul(Cast(table), scale), ids)` turned into a lookup that scales its result.

    Only where the table has one scale for each row, and rows are what is looked up.
    """
    made_by = {output: node for node in nodes for output in node.outputs}
    result: list[Node] = []
    for node in nodes:
        scaled = made_by.get(node.inputs[0]) if node.op == "Gather" else None
        cast = made_by.get(scaled.inputs[0]) if scaled is not None and scaled.op == "Mul" else None
        table = constants.get(cast.inputs[0]) if cast is not None and cast.op == "Cast" else None
        scale = constants.get(scaled.inputs[1]) if scaled is not None and scaled.op == "Mul" else None
        if (
            scaled is None
            or cast is None
            or table is None
            or scale is None
            or len(table.shape) != 2
            or scale.shape != (table.shape[0], 1)
            or any(_integer_of(attribute) != 0 for attribute in node.attributes)
        ):
            result.append(node)
            continue
        ids, output = node.inputs[1], node.outputs[0]
        result += [
            Node("Gather", (cast.inputs[0], ids), (f"{output}/rows",), node.attributes, f"{node.name}/rows"),
            Node("Gather", (scaled.inputs[1], ids), (f"{output}/scales",), node.attributes, f"{node.name}/scales"),
            Node("Cast", (f"{output}/rows",), (f"{output}/float",), cast.attributes, f"{node.name}/float"),
            Node("Mul", (f"{output}/float", f"{output}/scales"), (output,), (), f"{node.name}/scaled"),
        ]
    return result


def without_unused(nodes: Sequence[Node], results: set[str]) -> list[Node]:
    """Return the nodes on which one of `results` depends, in their order."""
    needed = set(results)
    kept = []
    for node in reversed(nodes):
        if needed.intersection(node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    return kept[::-1]


def _with_inputs(node: Node, names: Mapping[str, str]) -> Node:
    inputs = tuple(names.get(name, name) for name in node.inputs)
    return Node(node.op, inputs, node.outputs, node.attributes, node.name, node.domain)


def _move_out(tensor: memoryview, weights: bytearray, weights_name: str) -> bytes:
    fields = list(_fields(tensor))
    raw = next((_as_bytes(field) for field in fields if field.number == _TENSOR_RAW), None)
    if raw is None or len(raw) < _LARGE:
        return bytes(tensor)
    weights += b"\0" * (-len(weights) % _ALIGNMENT)
    place = {"location": weights_name, "offset": str(len(weights)), "length": str(len(raw))}
    weights += raw
    return (
        b"".join(_encode(field) for field in fields if field.number != _TENSOR_RAW)
        + b"".join(
            _bytes_field(
                _TENSOR_EXTERNAL,
                _bytes_field(_ENTRY_KEY, key.encode()) + _bytes_field(_ENTRY_VALUE, value.encode()),
            )
            for key, value in place.items()
        )
        + _varint(_TENSOR_LOCATION << 3)
        + _varint(_EXTERNAL)
    )


def _parse_constant(tensor: memoryview) -> Constant:
    shape: list[int] = []
    zero = False
    for field in _fields(tensor):
        if field.number == _TENSOR_DIMS and isinstance(field.value, int):
            shape.append(field.value)
        elif field.number == _TENSOR_DIMS:  # several in one field
            packed, position = _as_bytes(field), 0
            while position < len(packed):
                size, position = _read_varint(packed, position)
                shape.append(size)
        elif field.number == _TENSOR_RAW:
            raw = _as_bytes(field)
            zero = 0 < len(raw) <= 8 and not any(raw)
    return Constant(tuple(shape), zero)


def _integer_of(attribute: bytes) -> int:
    fields = _fields(memoryview(attribute))
    return next((f.value for f in fields if f.number == _ATTRIBUTE_INT and isinstance(f.value, int)), 0)


def _parse_node(message: memoryview) -> Node:
    texts: dict[int, list[str]] = {}
    attributes = []
    for field in _fields(message):
        if field.number == _NODE_ATTRIBUTE:
            attributes.append(bytes(_as_bytes(field)))
        elif field.number in {_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OP, _NODE_DOMAIN}:
            texts.setdefault(field.number, []).append(str(_as_bytes(field), "utf-8"))
    return Node(
        texts.get(_NODE_OP, [""])[0],
        tuple(texts.get(_NODE_INPUT, ())),
        tuple(texts.get(_NODE_OUTPUT, ())),
        tuple(attributes),
        texts.get(_NODE_NAME, [""])[0],
        texts.get(_NODE_DOMAIN, [""])[0],
    )


def _encode_node(node: Node) -> bytes:
    texts = [(_NODE_INPUT, name) for name in node.inputs] + [(_NODE_OUTPUT, name) for name in node.outputs]
    texts += [(_NODE_NAME, node.name), (_NODE_OP, node.op), (_NODE_DOMAIN, node.domain)]
    kept = [(number, text) for number, text in texts if text or number == _NODE_INPUT]  # an empty input: left out
    return b"".join(_bytes_field(number, text.encode()) for number, text in kept) + b"".join(
        _bytes_field(_NODE_ATTRIBUTE, attribute) for attribute in node.attributes
    )


def _text_of(message: memoryview, number: int) -> str:
    return next((str(_as_bytes(field), "utf-8") for field in _fields(message) if field.number == number), "")


def _as_bytes(field: Field) -> memoryview:
    if not isinstance(field.value, memoryview):
        raise GraphError(f"field {field.number} has wire type {field.wire}")
    return field.value


def _fields(message: memoryview) -> Iterator[Field]:
    """Yield the fields of a protobuf message. Raises GraphError where it is malformed."""
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _read_varint(message, position)
            yield Field(number, wire, value)
            continue
        if wire == 2:
            length, position = _read_varint(message, position)
        elif wire in {1, 5}:
            length = 8 if wire == 1 else 4
        else:
            raise GraphError(f"unknown wire type {wire}")
        if number == 0 or position + length > len(message):
            raise GraphError("a field reaches beyond its message")
        yield Field(number, wire, message[position : position + length])
        position += length


def _read_varint(message: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message) and shift < 70:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise GraphError("a number reaches beyond its message")


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _bytes_field(number: int, content: bytes | memoryview) -> bytes:
    return b"".join((_varint(number << 3 | 2), _varint(len(content)), content))


def _encode(field: Field) -> bytes:
    if isinstance(field.value, int):
        return _varint(field.number << 3) + _varint(field.value)
    if field.wire == 2:
        return _bytes_field(field.number, field.value)
    return _varint(field.number << 3 | field.wire) + bytes(field.value)
