"""Code that runs in other people's environments stands alone, and keeps to the syntax of Python 3.9."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.tree import ROOT

TARGET_PACKAGES = {"numpy", "onnxruntime", "tokenizers", "orjson"}
CHILDREN = sorted(
    path for path in (ROOT / "imprint").rglob("*.py") if path.stem.endswith("_child") or path.parent.name == "inside"
)


def evaluated_annotations(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the annotations that Python evaluates: those of signatures, modules and classes, not of local names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef) and node.returns:
            yield node.returns
        elif isinstance(node, ast.Module | ast.ClassDef):
            yield from (one.annotation for one in node.body if isinstance(one, ast.AnnAssign))


def test_the_children_are_found() -> None:
    assert ROOT / "imprint" / "inside" / "check.py" in CHILDREN


@pytest.mark.parametrize("path", CHILDREN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_child_imports_only_the_standard_library_and_what_a_target_has(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 1:
            assert path.parent.name == "inside", "only that folder runs as a package"
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            top = name.partition(".")[0]
            assert top in sys.stdlib_module_names or top in TARGET_PACKAGES, name


@pytest.mark.parametrize("path", CHILDREN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_child_keeps_to_the_syntax_of_python_3_9(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    annotations = list(evaluated_annotations(tree))
    # `X | None` in an annotation is only read, never evaluated, under this import.
    if any(isinstance(part, ast.BinOp) for one in annotations for part in ast.walk(one)):
        assert "from __future__ import annotations" in text
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Match), "match came with 3.10"
        if isinstance(node, ast.Call):
            named = {keyword.arg for keyword in node.keywords}
            called = ast.unparse(node.func)
            assert not (called == "zip" and "strict" in named), "zip(strict=) came with 3.10"
            assert not (called.endswith("dataclass") and named & {"slots", "kw_only"}), "came with 3.10"
