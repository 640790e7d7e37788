"""Texts in another encoding than UTF-8 are refused with the command that converts them, wherever they come from."""

from __future__ import annotations

import io
import os

import pytest

from imprint.embedding import sources
from imprint.errors import UsageError

TEXTS = {
    "ascii": "How do I install the GPU runtime?",
    "ascii, short": "hi",
    "ascii lines": "one line\nanother line\n",
    "chinese": "如何在显卡上安装运行时环境。上面的中文句子没有任何换行符、也没有拉丁字母。",
    "chinese, short": "显卡驱动",
    "chinese lines": "第一行文字\n第二行文字\n",
    "japanese": "東京は日本の首都です。カタカナも入っています。",
    "korean lines": "첫째 줄입니다\n둘째 줄입니다\n",
    "russian": "Как установить драйвер?",
    "long chinese": "显卡驱动程序安装说明上下左右" * 5000,
    "long ascii": "the same words again and again " * 5000,
    "german": "Größe und Übermaß, für alle Fälle",
}
WIDE = ["utf-16-le", "utf-16-be"]
NAMES = {"utf-16-le": "UTF-16LE", "utf-16-be": "UTF-16BE", "utf-32-le": "UTF-32LE", "utf-32-be": "UTF-32BE"}


def refusal(raw: bytes, name: str, read: object = sources.texts_of_lines) -> UsageError:
    with pytest.raises(UsageError) as caught:
        list(read(io.BytesIO(raw), name))  # type: ignore[operator]
    return caught.value


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", ["my texts.txt", sources.STDIN])
def test_utf_16_without_a_mark_is_named_with_what_converts_it(text: str, encoding: str, name: str) -> None:
    error = refusal(text.encode(encoding), name)
    file = "" if name == sources.STDIN else " 'my texts.txt'"
    assert error.hint == f"convert it to UTF-8 first: `iconv -f {NAMES[encoding]} -t UTF-8{file}`"
    assert NAMES[encoding] in error.message


@pytest.mark.parametrize("encoding", WIDE)
def test_json_lines_in_utf_16_are_named_too(encoding: str) -> None:
    error = refusal('"text"\n{"text": "b"}\n'.encode(encoding), "f", sources.texts_of_json_lines)
    assert f"iconv -f {NAMES[encoding]} -t UTF-8 f" in str(error.hint)


@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be"])
def test_utf_32_is_not_called_utf_16(encoding: str) -> None:
    assert f"iconv -f {NAMES[encoding]} -t UTF-8" in str(refusal("some words\n".encode(encoding), "f").hint)


@pytest.mark.parametrize(
    "text", ["Größe und Übermaß", "déjà vu, à la carte", "naïve café", "Ärger", "hôte", "x" * 3000 + "é" * 5, "¡olé!"]
)
def test_latin_1_is_not_called_utf_16(text: str) -> None:
    error = refusal(text.encode("latin-1"), "f")
    assert "not valid UTF-8" in error.message
    assert "iconv -f ISO-8859-1 -t UTF-8 f" in str(error.hint)


@pytest.mark.parametrize("text", [*TEXTS.values(), "", "\t\r", "\x1b[1m", "🙂", "é", "中", "a\x07b"])
def test_utf_8_is_taken_as_it_is(text: str) -> None:
    read = b"\n".join(sources.texts_of_lines(io.BytesIO(text.encode()), "f"))
    assert read == text.encode().removesuffix(b"\n").replace(b"\r\n", b"\n")


@pytest.mark.parametrize("encoding", [*WIDE, "latin-1"])
def test_an_argument_in_another_encoding_is_refused_with_what_converts_it(encoding: str) -> None:
    text = "Größe" if encoding == "latin-1" else "显卡驱动程序"
    given = os.fsdecode(text.encode(encoding))
    with pytest.raises(UsageError) as caught:
        list(sources.texts_of_arguments([given]))
    assert f"`iconv -f {NAMES.get(encoding, 'ISO-8859-1')} -t UTF-8`" in str(caught.value.hint)
