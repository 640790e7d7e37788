"""What an error advises is in the catalogue (`data/hints.toml`), not where the error is raised."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.tree import ROOT, tracked
from imprint.hints import hints

SOURCES = list(tracked("imprint/*.py", "cmd/imprint_cli/*.py"))

CALLS = {"ImprintError", "Notice", "Finding"}
"""What carries a hint as a keyword, or as the third of its values (the fourth of a finding)."""

EXCEPTIONS = {
    "imprint/planning/hints.py": "found by planning again: the driver the GPU or the nearest system that would do",
}

TELLERS = re.compile(
    r"(^|_)(hint|remedy|repair)$|^_?(retry|default|help)_hint$|_where_to_look|_how_to_convert|nearest_supported"
)
"""Functions whose answer is a hint."""

PLACEHOLDERS = r"(?<!\w)(?:PATH|FILE|DIR|FOLDER|URL|NAME|KEY|VALUE|CODE|VERSION|SECONDS|HOST|COMMAND)\b"

TO_CHOOSE = {
    "index-login": "USER, PASSWORD and HOST are a person's own",
    "setup-there": "FILE and DIR are a person's choice",
    "folder-lacks-wheels": "the same",
    "name-an-environment": "PATH is an environment of the person's",
    "name-the-python": "VERSION is that of another machine",
    "without-offline": "DIR is a folder of the person's choice",
    "wait-longer": "SECONDS is the person's choice",
    "another-index": "URL is a person's choice",
    "another-index-again": "the same",
    "give-texts": "FILE is a person's own",
    "npy-to-a-file": "the same",
    "vectors-to-a-file": "the same",
}
"""Hints with a placeholder that nothing here could fill."""


def written(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the literal texts that an expression may give."""
    if (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value) or isinstance(
        node, ast.JoinedStr
    ):
        yield node
    elif isinstance(node, ast.IfExp):
        yield from (*written(node.body), *written(node.orelse))
    elif isinstance(node, ast.BoolOp | ast.Dict):
        for value in node.values:
            yield from written(value)


def literal_hints(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of every hint that a module writes itself."""
    for found in _hints_in(tree):
        yield from ((text.lineno, ast.unparse(text)) for text in written(found))


def _hints_in(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name != "interruptible":
                yield from (keyword.value for keyword in node.keywords if keyword.arg == "hint")
            place = 3 if name == "Finding" else 2
            if name in CALLS and len(node.args) > place:
                yield node.args[place]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).rpartition(".")[2] in {"hint", "fix"}:
            yield node.value
        elif isinstance(node, ast.FunctionDef) and TELLERS.search(node.name):
            yield from (part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_no_error_has_a_hint_of_its_own(path: Path) -> None:
    found = [f"{named(path)}:{line}: {text}" for line, text in literal_hints(ast.parse(path.read_text("utf-8")))]
    assert named(path) in EXCEPTIONS or not found


@pytest.mark.parametrize(
    "line",
    [
        'raise UsageError("no", hint="do this")',
        'Notice("code", "no", f"run `{command}`")',
        'hint = "do this" if there else other',
        'def _hint():\n    return "do this"',
    ],
)
def test_a_literal_hint_is_found(line: str) -> None:
    assert list(literal_hints(ast.parse(line)))


def test_every_hint_is_told_with_the_words_it_needs() -> None:
    told: set[str] = set()
    for path in SOURCES:
        text = path.read_text("utf-8")
        told |= {name for name in hints() if f'"{name}"' in text}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "helps":
                _require_words(node, named(path))
    assert set(hints()) - told == set()


def _require_words(node: ast.Call, where: str) -> None:
    words = {keyword.arg for keyword in node.keywords}
    for name in written(node.args[0]):
        assert isinstance(name, ast.Constant)
        assert isinstance(name.value, str)
        assert wanted(hints()[name.value]) == words, f"{where}:{node.lineno}: {name.value}"


def wanted(text: str) -> set[str]:
    return {word for _, word, _, _ in string.Formatter().parse(text) if word}


@pytest.mark.parametrize("name", list(hints()))
def test_a_placeholder_is_left_only_where_a_person_chooses(name: str) -> None:
    text = re.sub(r"\{\w+\}", "", hints()[name])
    left = re.findall(PLACEHOLDERS, text)
    assert bool(left) == (name in TO_CHOOSE), f"{name}: {left}"
    assert not hints()[name].endswith(".")


@pytest.mark.parametrize("name", list(EXCEPTIONS))
def test_an_exception_that_is_not_needed_goes(name: str) -> None:
    assert list(literal_hints(ast.parse((ROOT / name).read_text("utf-8"))))
