"""Texts are read one at a time; what is wrong is named with its line."""

import io
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.embedding import sources
from imprint.errors import UsageError

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\ufeff"))


def lines(content: bytes) -> list[bytes]:
    return list(sources.texts_of_lines(io.BytesIO(content), "in"))


def json_lines(content: bytes) -> list[bytes]:
    return list(sources.texts_of_json_lines(io.BytesIO(content), "in"))


@given(st.lists(TEXT), st.sampled_from(["\n", "\r\n"]))
def test_lines_come_back_as_texts(texts: list[str], end: str) -> None:
    assert lines("".join(text + end for text in texts).encode()) == [text.encode() for text in texts]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_json_lines_come_back_as_texts(texts: list[str]) -> None:
    plain = "".join(json.dumps(text) + "\n" for text in texts).encode()
    objects = "".join(json.dumps({"text": text, "more": 1}) + "\n" for text in texts).encode()
    assert json_lines(plain) == json_lines(objects) == [text.encode() for text in texts]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"a\n\n", [b"a", b""]),
        (b"\xef\xbb\xbfa\nb\n", [b"a", b"b"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"a\0b\n", [b"a\0b"]),
    ],
)
def test_blank_lines_count_and_the_last_line_end_does_not(content: bytes, texts: list[bytes]) -> None:
    assert lines(content) == texts


def test_invalid_utf8_is_refused_with_its_line() -> None:
    reader = sources.texts_of_lines(io.BytesIO(b"fine\nalso fine\nnot \xff fine\n"), "notes.txt")
    assert [next(reader), next(reader)] == [b"fine", b"also fine"]
    with pytest.raises(UsageError, match=r"notes.txt, line 3: not valid UTF-8 \(byte 5 is 0xff\)"):
        next(reader)


WIDE = "Grüße\naus Köln\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
@pytest.mark.parametrize("read", [sources.texts_of_lines, sources.texts_of_json_lines])
def test_another_encoding_is_named_with_a_command_that_converts_it(
    tmp_path: Path, encoding: str, read: Callable[[IO[bytes], str], Iterator[bytes]]
) -> None:
    file = tmp_path / "a file"
    text = WIDE if read is sources.texts_of_lines else '"Grüße"\n"aus Köln"\n'
    file.write_bytes(text.encode(encoding))
    with file.open("rb") as stream, pytest.raises(UsageError) as caught:
        list(read(stream, str(file)))
    named = {"utf-16-le": "UTF-16LE", "utf-16-be": "UTF-16BE", "latin-1": "not valid UTF-8"}
    assert named.get(encoding, encoding.upper()) in caught.value.message
    command = str(caught.value.hint).split("`")[1]
    converted = subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout
    assert list(read(io.BytesIO(converted), "in")) == ["Grüße".encode(), "aus Köln".encode()]


def test_a_text_with_zeros_is_a_text() -> None:
    assert lines(b"a\0\n") == [b"a\0"]
    assert lines(b"\0\0\0\0\n") == [b"\0\0\0\0"]
    assert lines(b"a\0bc\0\n") == [b"a\0bc\0"]


@given(st.lists(TEXT), st.booleans())
def test_the_lines_of_a_file_are_counted_as_they_are_read(texts: list[str], ended: bool) -> None:
    content = "".join(text + "\n" for text in texts).encode()
    with tempfile.TemporaryFile() as file:
        file.write(content if ended else content[:-1])
        file.seek(0)
        count = sources.count_lines(file)
        assert count == len(list(sources.texts_of_lines(file, "in")))
        assert sources.count_lines(file) == 0


def test_what_is_no_file_is_not_counted() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a\n")
    os.close(writer)
    with open(reader, "rb") as stream:  # noqa: PTH123
        assert sources.count_lines(stream) is None
    assert sources.count_lines(io.BytesIO(b"a\n")) is None


@pytest.mark.parametrize("line", [b"5", b"null", b'{"txt": "a"}', b'{"text": 1}', b"plain", b"", b"[" * 100_000])
def test_json_lines_that_hold_no_text_are_refused_with_their_line(line: bytes) -> None:
    with pytest.raises(UsageError, match="in, line 2"):
        json_lines(b'"a"\n' + line + b"\n")


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(UsageError, match="line 1: not valid Unicode"):
        json_lines(b'"\\ud800"\n')
    with pytest.raises(UsageError, match="text 2"):
        list(sources.texts_of_arguments(["fine", "\udcff"]))


def test_a_line_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST", 10)
    assert lines(b"0123456789\n0123456789\r\n") == [b"0123456789"] * 2
    with pytest.raises(UsageError, match="line 2: longer"):
        lines(b"a\n" + b"x" * 1000)
