"""Words of commands, for each shell."""

import shlex
import subprocess

import pytest

from imprint.quoting import CMD, POWERSHELL, SH, joined, program, quoted, shell_of


@pytest.mark.parametrize(
    ("text", "sh", "powershell", "cmd"),
    [
        ("plain", "plain", "plain", "plain"),
        ("/a b/c", "'/a b/c'", '"/a b/c"', '"/a b/c"'),
        ("C:\\Users\\x\\.venv", "'C:\\Users\\x\\.venv'", "C:\\Users\\x\\.venv", "C:\\Users\\x\\.venv"),
        ("C:\\my $x", "'C:\\my $x'", "'C:\\my $x'", '"C:\\my $x"'),
        ("it's", "'it'\"'\"'s'", '"it\'s"', '"it\'s"'),
        ("a&b", "'a&b'", '"a&b"', '"a&b"'),
        ("", "''", '""', '""'),
    ],
)
def test_a_word_in_each_shell(text: str, sh: str, powershell: str, cmd: str) -> None:
    assert [quoted(text, shell) for shell in (SH, POWERSHELL, CMD)] == [sh, powershell, cmd]


def test_powershell_calls_a_quoted_program() -> None:
    assert program("C:\\a b\\python.exe", POWERSHELL) == '& "C:\\a b\\python.exe"'
    assert program("C:\\a b\\python.exe", CMD) == '"C:\\a b\\python.exe"'
    assert program("python", POWERSHELL) == "python"


def test_which_shell_somebody_types_into() -> None:
    assert shell_of({}, "linux") == SH
    assert shell_of({"PROMPT": "$P$G"}, "win32") == CMD
    assert shell_of({"PSModulePath": "x"}, "win32") == POWERSHELL


@pytest.mark.parametrize("word", ["a b", "it's", "$HOME", "`x`", 'say "x"', "ü;rm", "*", "a\nb"])
def test_a_posix_shell_reads_back_what_was_quoted(word: str) -> None:
    ran = subprocess.run(["sh", "-c", joined(["printf", "%s", word])], capture_output=True, text=True, check=True)
    assert ran.stdout == word
    assert shlex.split(joined(["x", word])) == ["x", word]
