"""The direction of imports, by import-linter, and that its contracts would notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from architecture.tree import ROOT

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(root / "cmd")]), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-c", LINT], cwd=root, env=environment, check=False, capture_output=True, text=True
    )


def test_imports_keep_the_layers() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also not inside functions: what loads late is an edge like any other."""
    graph = grimp.build_graph("imprint", "imprint_cli", "imprint_launch", "imprint_dev", cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("imprint/planning/model.py", "import imprint.paths"),
        ("imprint/probing/host.py", "import imprint.state.files"),
        ("imprint/errors.py", "import typer"),
        ("imprint/results.py", "import imprint_cli.exits"),
        ("imprint/newcomer.py", "import json"),
        ("cmd/imprint_cli/app.py", "import onnxruntime"),
    ],
)
def test_a_forbidden_import_is_noticed(tmp_path: Path, module: str, line: str) -> None:
    ignore = shutil.ignore_patterns("__pycache__")
    for folder in ("imprint", "cmd/imprint_cli", "cmd/imprint_dev", "cmd/imprint_launch"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / module).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout or "exhaustive" in done.stdout
