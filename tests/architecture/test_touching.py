"""Whatever removes, moves, creates or overwrites goes through `imprint.touch`; exceptions have a name and a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.tree import ROOT, tracked

SOURCES = list(tracked("imprint/*.py", "cmd/imprint_cli/*.py", "cmd/imprint_launch/*.py"))

METHODS = {
    *("unlink", "rmdir", "rmtree", "removedirs", "rename", "renames", "write_text", "write_bytes", "touch", "mkdir"),
    *("makedirs", "symlink_to", "hardlink_to", "symlink", "link", "mkstemp", "mkdtemp", "NamedTemporaryFile"),
    *("copyfile", "copy2", "copytree", "copystat", "chmod", "lchmod", "chown", "truncate", "ftruncate", "utime"),
}
"""Names that nothing but a change of files has."""

OURS = {"touch.link_file", "shutil.copyfileobj"}

EXCEPTIONS: dict[str, dict[str, str]] = {
    "imprint/touch.py": {"*": "the one place"},
    "imprint/inside/answering.py": {"*": "runs alone in a target, and answers in a file it was given"},
    "imprint/inside/placement.py": {"*": "the same, and removes the profile it wrote there"},
    "imprint/runtime/installer/bundle_folder.py": {"*": "empties a new file before a download is tried again"},
    "imprint/embedding/outputs.py": {"*": "writes the file that a person named as output, and asks for that first"},
}


def changes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of every call in a module that may change a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if not name.startswith("touch.") and name not in OURS and _changes(node, name):
                yield node.lineno, name


def _changes(node: ast.Call, name: str) -> bool:
    owner, _, last = name.rpartition(".")
    if last in METHODS or name in {"os.replace", "os.remove", "shutil.move", "shutil.copy"}:
        return bool(owner) or last in {"rmtree", "mkstemp", "mkdtemp"}
    if last == "replace":
        # Text has two arguments, and `dataclasses.replace` keywords.
        return bool(owner) and len(node.args) == 1 and not node.keywords
    return last == "open" and _opens_to_write(node)


def _opens_to_write(node: ast.Call) -> bool:
    words = [*node.args, *(keyword.value for keyword in node.keywords)]
    if "os.devnull" in map(ast.unparse, words):
        return False
    flags = any(flag in ast.unparse(word) for word in words for flag in ("O_CREAT", "O_TRUNC", "O_APPEND"))
    texts = [word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    return flags or any(set(text) <= set("rwxabt+") and set(text) & set("wxa+") for text in texts)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_files_are_changed_in_one_place_alone(path: Path) -> None:
    excused = EXCEPTIONS.get(named(path), {})
    found = [f"{named(path)}:{line}: {name}" for line, name in changes(ast.parse(path.read_text("utf-8")))]
    assert "*" in excused or not found


@pytest.mark.parametrize("name", [name for name in EXCEPTIONS if name != "imprint/touch.py"])
def test_an_exception_that_is_not_needed_goes(name: str) -> None:
    assert list(changes(ast.parse((ROOT / name).read_text("utf-8"))))


@pytest.mark.parametrize(
    "line",
    [
        "path.unlink()",
        "shutil.rmtree(path)",
        "os.replace(a, b)",
        "path.replace(other)",
        "path.open('wb')",
        "open(path, 'a')",
        "open(path, mode='x')",
        "os.open(path, os.O_RDWR | os.O_CREAT)",
        "tempfile.mkstemp()",
        "path.write_text('')",
    ],
)
def test_the_look_finds_what_it_is_for(line: str) -> None:
    assert list(changes(ast.parse(line)))


@pytest.mark.parametrize("line", ["text.replace('a', 'b')", "replace(value, name=1)", "path.open('rb')", "open(path)"])
def test_the_look_takes_nothing_else_for_a_change(line: str) -> None:
    assert not list(changes(ast.parse(line)))


def test_nothing_asks_an_installer_to_remove_anything() -> None:
    """An installer believes a RECORD: it would remove whatever a row names."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            words = [word.value for word in getattr(node, "elts", ()) if isinstance(word, ast.Constant)]
            assert not {"--reinstall", "--force-reinstall", "--reinstall-package"} & set(words), named(path)
            assert not ("pip" in words and "uninstall" in words), named(path)
