"""The protocol between the tool and the worker: length-prefixed frames over two pipes. Pure standard library.

A frame is one kind byte, the payload's length (uint32, little-endian) and the payload. To the worker go any number of
TEXTS, now and then a FLUSH (no more come for the moment), and one END; from it come one HELLO, then ROWS (in the order
of the texts) and PROGRESS, at last DONE or FAILURE.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import IO, Any

TEXTS = b"T"
FLUSH = b"F"
END = b"E"
HELLO = b"H"
PROGRESS = b"P"
ROWS = b"R"
DONE = b"D"
FAILURE = b"X"

LARGEST = 64 * 1024 * 1024
"""A longer payload (bytes) is not ours: the other side is broken."""

_HEAD = struct.Struct("<cI")
_COUNT = struct.Struct("<I")


class ProtocolError(Exception):
    """The other side sent what is no frame, or stopped in the middle of one."""


def write_frame(stream: IO[bytes], kind: bytes, payload: bytes = b"") -> None:
    """Write one frame and flush it."""
    stream.write(_HEAD.pack(kind, len(payload)))
    stream.write(payload)
    stream.flush()


def read_frame(stream: IO[bytes]) -> tuple[bytes, bytes] | None:
    """Return (kind, payload), or None where the stream ends between two frames. Raises ProtocolError."""
    head = stream.read(_HEAD.size)
    if not head:
        return None
    if len(head) < _HEAD.size:
        raise ProtocolError("the stream ended inside a frame's head")
    kind, length = _HEAD.unpack(head)
    if length > LARGEST:
        raise ProtocolError(f"a frame claims {length} bytes")
    payload = stream.read(length)
    if len(payload) < length:
        raise ProtocolError("the stream ended inside a frame")
    return kind, payload


def pack_texts(texts: Sequence[bytes]) -> bytes:
    """Return the payload of a TEXTS frame: count, the length of each, then their UTF-8 bytes."""
    return struct.pack(f"<{len(texts) + 1}I", len(texts), *map(len, texts)) + b"".join(texts)


def unpack_texts(payload: bytes) -> list[str]:
    """Return the texts of a TEXTS frame. Raises ProtocolError or UnicodeDecodeError."""
    (count,) = _COUNT.unpack_from(payload)
    lengths = struct.unpack_from(f"<{count}I", payload, _COUNT.size)
    start = _COUNT.size * (count + 1)
    if start + sum(lengths) != len(payload):
        raise ProtocolError("the lengths of a frame's texts do not add up")
    texts = []
    for length in lengths:
        texts.append(payload[start : start + length].decode("utf-8"))
        start += length
    return texts


def pack_rows(count: int, data: bytes) -> bytes:
    """Return the payload of a ROWS frame: how many rows, then their encoded bytes."""
    return _COUNT.pack(count) + data


def unpack_rows(payload: bytes) -> tuple[int, bytes]:
    """Return (count, encoded rows) of a ROWS frame."""
    (count,) = _COUNT.unpack_from(payload)
    return count, payload[_COUNT.size :]


def pack_facts(facts: Mapping[str, Any]) -> bytes:
    """Return the payload of a HELLO, PROGRESS, DONE or FAILURE frame."""
    return json.dumps(dict(facts)).encode("utf-8")
