"""What a model file asks of a runtime, what a runtime reads, and whether that is enough. Reads one file's outline.

ONNX Runtime refuses a model of a newer IR version, and one of a newer operator set than it was released with. Neither
is in its metadata, so the check finds out with models of one node.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

from imprint import access
from imprint.values import Record

_IR, _OPSET_IMPORT = 1, 8
_DOMAIN, _VERSION = 1, 2
"""Field numbers of onnx.proto3."""

_OURS = frozenset({b"", b"ai.onnx"})
_LONGEST = 64 * 1024
"""A field that matters here is a few bytes long."""


class Needs(Record):
    """The IR version and the operator set of a model, or the newest of each that a runtime reads; None unknown."""

    ir: int | None = None
    opset: int | None = None

    def beyond(self, reads: Needs, version: str | None) -> str | None:
        """Return what of the model is too new for a runtime that reads `reads`, as a sentence; None without any."""
        for what, has, most in (("IR version", self.ir, reads.ir), ("opset", self.opset, reads.opset)):
            if has is not None and most is not None and has > most:
                return too_new(what, has, most, version)
        return None


def needs_from_json(value: object) -> Needs | None:
    """Return what a record of ours says, None where it says nothing that can be used."""
    if not isinstance(value, dict):
        return None
    ir, opset = value.get("ir"), value.get("opset")
    return Needs(ir if isinstance(ir, int) else None, opset if isinstance(opset, int) else None)


def too_new(what: str, has: int | str, most: int | str, version: str | None) -> str:
    """Return the sentence about a model that a runtime is too old for."""
    runtime = f"ONNX Runtime {version or ''}".rstrip()
    return f"the model has ONNX {what} {has}, but {runtime} reads only up to {most}"


def needs_of(path: Path) -> Needs | None:
    """Return what the model in a file needs; None where it cannot be read, or is no ONNX model."""
    ir: int | None = None
    opset: int | None = None
    try:
        size = path.stat().st_size if access.is_file(path) else 0
        if not size:
            return None
        with path.open("rb") as file:
            while file.tell() < size:
                number, value = _field(file)
                if number == _IR and isinstance(value, int):
                    ir = value
                elif number == _OPSET_IMPORT and isinstance(value, bytes):
                    opset = _opset(value) or opset
    except (OSError, ValueError):
        return None
    return Needs(ir, opset)


def _opset(message: bytes) -> int | None:
    """Return the version of the standard operators that an import names, None for other operators."""
    domain, version = b"", None
    at = 0
    while at < len(message):
        tag, at = _varint_in(message, at)
        value, at = _varint_in(message, at)
        if tag & 7 == 2:
            if tag >> 3 == _DOMAIN:
                domain = message[at : at + value]
            at += value
        elif tag >> 3 == _VERSION:
            version = value
    return version if domain in _OURS else None


def _field(file: IO[bytes]) -> tuple[int, int | bytes | None]:
    """Return the next field's number and its value; None for one that is long, which is skipped."""
    tag = _varint(file)
    wire = tag & 7
    if wire == 0:
        return tag >> 3, _varint(file)
    length = {1: 8, 5: 4}.get(wire)
    if length is None:
        if wire != 2:
            raise ValueError("not a protobuf message")
        length = _varint(file)
    if length > _LONGEST:
        file.seek(length, 1)
        return tag >> 3, None
    return tag >> 3, file.read(length)


def _varint(file: IO[bytes]) -> int:
    value = shift = 0
    while shift < 70:
        byte = file.read(1)
        if not byte:
            break
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
    raise ValueError("not a protobuf message")


def _varint_in(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 70:
        value |= (message[at] & 0x7F) << shift
        shift += 7
        at += 1
        if message[at - 1] < 0x80:
            return value, at
    raise ValueError("not a protobuf message")
