"""Texts are read one at a time; what is wrong is named with its line."""

import io
import json

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
