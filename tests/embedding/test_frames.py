"""Frames read back as they were written, and what is no frame is refused."""

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.inside import frames


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=50), max_size=20))
def test_texts_come_back(texts: list[str]) -> None:
    assert frames.unpack_texts(frames.pack_texts([text.encode() for text in texts])) == texts


@given(st.binary(max_size=100), st.integers(0, 2**32 - 1))
def test_rows_come_back(data: bytes, count: int) -> None:
    assert frames.unpack_rows(frames.pack_rows(count, data)) == (count, data)


@given(st.lists(st.tuples(st.sampled_from([frames.TEXTS, frames.ROWS, frames.END]), st.binary(max_size=50))))
def test_a_stream_of_frames_comes_back(sent: list[tuple[bytes, bytes]]) -> None:
    stream = io.BytesIO()
    for kind, payload in sent:
        frames.write_frame(stream, kind, payload)
    stream.seek(0)
    assert [frames.read_frame(stream) for _ in sent] == sent
    assert frames.read_frame(stream) is None


@pytest.mark.parametrize("cut", [1, 4, 5, 7])
def test_a_stream_that_ends_inside_a_frame_is_refused(cut: int) -> None:
    stream = io.BytesIO()
    frames.write_frame(stream, frames.TEXTS, b"text")
    with pytest.raises(frames.ProtocolError):
        frames.read_frame(io.BytesIO(stream.getvalue()[:cut]))


def test_an_absurd_length_is_refused_before_anything_is_read() -> None:
    with pytest.raises(frames.ProtocolError, match="claims"):
        frames.read_frame(io.BytesIO(struct.pack("<cI", b"T", frames.LARGEST + 1)))


def test_lengths_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(frames.ProtocolError, match="add up"):
        frames.unpack_texts(frames.pack_texts([b"ab"]) + b"c")
