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
    "chinese, short": "上下文。",
    "chinese lines": "第一行文字\n第二行文字\n",
    "japanese": "東京は日本の首都です。カタカナも入っています。",
    "korean lines": "첫째 줄입니다\n둘째 줄입니다\n",
    "with a picture": "一二三四五六🙂",
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


WESTERN = [
    *("Größe und Übermaß", "déjà vu, à la carte", "naïve café", "Ärger", "hôte", "x" * 3000 + " é" * 5, "¡olé!"),
    *("“hi” €", "“hi”€", "“Yes”, he said – it’s 5 €…", "He’s “in”", "l’été…", "“a line”\x0band ‘one’ more"),  # noqa: RUF001 - these are the bytes that Latin-1 lacks
]
OTHERS = {
    "shift-jis": "東京は日本の首都です。カタカナも入っています。",
    "shift-jis, hiragana": "ひらがな",
    "euc-jp": "東京は日本の首都です",
    "gb18030": "如何在显卡上安装运行时环境",
    "big5": "如何安裝驅動程式",
    "euc-kr": "첫째 줄입니다",
    "windows-1251": "Как установить драйвер?",
    "koi8-r": "Как установить драйвер?",
}


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("text", WESTERN)
def test_western_text_is_not_called_utf_16_and_the_command_converts_its_bytes(text: str, end: str) -> None:
    raw = (text + end).encode("windows-1252")
    error = refusal(raw, "f")
    assert "not valid UTF-8" in error.message
    assert "iconv -f WINDOWS-1252 -t UTF-8 f" in str(error.hint)
    assert raw.decode("WINDOWS-1252") == text + end


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("name", OTHERS)
def test_text_in_an_encoding_that_nothing_proves_names_none(name: str, end: str) -> None:
    raw = (OTHERS[name] + end).encode(name.partition(",")[0])
    error = refusal(raw, "my file")
    assert "not valid UTF-8" in error.message
    assert error.hint == "convert it to UTF-8 first; `file -i 'my file'` guesses its encoding"
    with pytest.raises(UsageError) as caught:
        list(sources.texts_of_arguments([os.fsdecode(raw)]))
    assert caught.value.hint == "give it in UTF-8"


def test_bytes_that_no_western_text_has_are_not_called_western() -> None:
    assert "iconv" not in str(refusal(b"a name \x81 and more", "f").hint)
    assert refusal(b"a name \x81 and more", sources.STDIN).hint == "convert it to UTF-8 first"


@pytest.mark.parametrize("text", [*TEXTS.values(), "", "\t\r", "\x1b[1m", "🙂", "é", "中", "a\x07b"])
def test_utf_8_is_taken_as_it_is(text: str) -> None:
    read = b"\n".join(sources.texts_of_lines(io.BytesIO(text.encode()), "f"))
    assert read == text.encode().removesuffix(b"\n").replace(b"\r\n", b"\n")


@pytest.mark.parametrize("encoding", [*WIDE, "windows-1252"])
def test_an_argument_in_another_encoding_is_refused_with_what_converts_it(encoding: str) -> None:
    text = "“Größe”" if encoding == "windows-1252" else "显卡驱动程序说明"
    given = os.fsdecode(text.encode(encoding))
    with pytest.raises(UsageError) as caught:
        list(sources.texts_of_arguments([given]))
    assert f"`iconv -f {NAMES.get(encoding, 'WINDOWS-1252')} -t UTF-8`" in str(caught.value.hint)
