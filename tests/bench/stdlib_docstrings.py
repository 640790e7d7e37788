"""Collects every docstring of the standard library, by reading source files, not by importing them.

Run by hand: `python tests/bench/stdlib_docstrings.py corpus.jsonl` writes one object a line:
`{"text": docstring, "module": "json.encoder"}`.
"""

from __future__ import annotations

import ast
import json
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

_SKIPPED = {
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idle_test",
    "idlelib",
    "lib2to3",
    "__pycache__",
    "turtledemo",
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield (module, docstring) in the order of the files' names; the text is dedented and never empty."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root).with_suffix("")
        if _SKIPPED.intersection(relative.parts):
            continue
        parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old sources have escapes that newer Pythons warn about
            try:
                tree = ast.parse(path.read_bytes())
            except (SyntaxError, ValueError):
                continue
        for node in ast.walk(tree):
            if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
                yield ".".join(parts), text


def write_corpus(path: Path) -> int:
    """Write the corpus as jsonl to `path`; returns how many texts it holds."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for module, text in docstrings():
            file.write(json.dumps({"text": text, "module": module}) + "\n")
            count += 1
    return count


if __name__ == "__main__":
    sys.stderr.write(f"{write_corpus(Path(sys.argv[1]))} texts\n")
