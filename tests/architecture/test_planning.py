"""Planning is pure: the standard library alone, nothing that touches the machine, on every supported Python."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.tree import ROOT

MODULES = sorted((ROOT / "imprint" / "planning").glob("*.py"))
OURS = ("imprint.planning", "imprint.errors", "imprint.envvars", "imprint.values", "imprint.words", "imprint.sizes")
IMPURE = {
    "asyncio",
    "builtins",
    "ctypes",
    "datetime",
    "glob",
    "io",
    "locale",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "platform",
    "random",
    "secrets",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "subprocess",
    "sys",
    "sysconfig",
    "tempfile",
    "threading",
    "time",
    "urllib",
    "uuid",
}
LOAD_ALL = """
import importlib, pathlib, sys
sys.path.insert(0, sys.argv[1])
for path in sorted(pathlib.Path(sys.argv[1], "imprint", "planning").glob("*.py")):
    importlib.import_module("imprint.planning." + path.stem if path.stem != "__init__" else "imprint.planning")
foreign = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"imprint", "__main__"}
sys.exit(", ".join(sorted(foreign)) or 0)
"""


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def interpreters() -> list[str]:
    """Return an interpreter of each supported minor version there is on this machine, this one first."""
    found = {sys.version_info[:2]: sys.executable}
    if uv := shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv"):
        for minor in range(11, 20):
            asked = [uv, "python", "find", "--no-config", "--no-python-downloads", "--system", f"3.{minor}"]
            answer = subprocess.run(asked, check=False, capture_output=True, text=True)
            if answer.returncode == 0:
                found.setdefault((3, minor), answer.stdout.strip())
    return list(found.values())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_planning_imports_the_standard_library_and_touches_no_machine(path: Path) -> None:
    for name in imports(path):
        top = name.partition(".")[0]
        assert name.startswith(OURS) or (top in sys.stdlib_module_names and top not in IMPURE), name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_planning_neither_opens_nor_prints(path: Path) -> None:
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"open", "print", "input", "exec", "eval", "__import__", "compile"}


@pytest.mark.parametrize("python", interpreters(), ids=lambda python: Path(python).name)
def test_planning_loads_isolated_and_without_site(python: str) -> None:
    done = subprocess.run(
        [python, "-I", "-S", "-B", "-c", LOAD_ALL, str(ROOT)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
