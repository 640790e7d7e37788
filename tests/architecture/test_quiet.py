"""Nothing is sent: whatever imports ONNX Runtime tells it so first, and so does whatever starts that."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from architecture.tree import ROOT, tracked

SWITCH = "ORT_DISABLE_TELEMETRY"
IMPORT = re.compile(r"^\s*(?:import onnxruntime\b|from onnxruntime\b)", re.MULTILINE)
STARTERS = {"run", "Popen", "run_child", "ask_child", "call", "check_call", "check_output", "execv", "execve", "spawnv"}
SOURCES = tracked("imprint/*.py", "cmd/*.py", "tests/*.py")

STARTS_NOTHING_OF_A_TARGET = {
    "imprint/probing/this_machine.py": "the seam itself: what it runs is its callers' affair",
    "imprint/probing/children.py": "the same",
    "imprint/probing/interpreter.py": "`-S`: the packages of the environment cannot be imported",
    "imprint/probing/nvidia.py": "`-S`: the same, and our own interpreter",
    "imprint/probing/system.py": "the loader of musl",
    "imprint/probing/foreign_systems.py": "programs of Windows and macOS",
    "imprint/runtime/installer/uv.py": "uv",
    "imprint/runtime/installer/watch.py": "uv",
    "cmd/imprint_launch/building.py": "uv and pip in the tool environment, which never holds ONNX Runtime",
    "cmd/imprint_launch/surroundings.py": "the same",
}
"""Modules of the product that start children in which no ONNX Runtime can be loaded, and why."""


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def importers() -> list[Path]:
    """Return the files that import ONNX Runtime, themselves or in code that they hold as text."""
    quoted = ROOT / "tests" / "architecture"
    return [path for path in SOURCES if IMPORT.search(path.read_text("utf-8")) and path.parent != quoted]


def starts(path: Path) -> Iterator[str]:
    """Yield the calls that start a process in a file, such as `subprocess.run`, `host.run`, `run_child`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            owner, _, last = name.rpartition(".")
            if last in STARTERS and (last != "run" or owner == "subprocess" or owner.split(".")[-1] == "host"):
                yield name


def test_the_importers_are_found() -> None:
    found = {named(path) for path in importers()}
    assert "imprint/inside/loading.py" in found
    assert {name for name in found if name.startswith("imprint/inside/")} == {"imprint/inside/loading.py"}


@pytest.mark.parametrize("path", importers(), ids=named)
def test_whatever_imports_onnx_runtime_switches_its_telemetry_off_before(path: Path) -> None:
    text = path.read_text("utf-8")
    if SWITCH in text:
        found = IMPORT.search(text)
        assert found is not None
        assert text.index(SWITCH) < found.start()
    else:
        assert "= child_environment(" in text or "env=child_environment(" in text, (
            "it holds code for a child, which has to be started quietly"
        )


@pytest.mark.parametrize("path", [path for path in SOURCES if "tests" not in path.parts], ids=named)
def test_whatever_starts_a_child_makes_its_environment_in_the_one_place(path: Path) -> None:
    name = named(path)
    if name.startswith("cmd/imprint_dev/") or not list(starts(path)):
        return
    text = path.read_text("utf-8")
    if name in STARTS_NOTHING_OF_A_TARGET:
        assert "child_environment" not in text
        return
    assert "child_environment(" in text or "worker_environment(" in text, (
        f"{name} starts a child: give it `child_environment`, or say here why no ONNX Runtime can be in it"
    )


def test_the_reasons_are_for_files_that_start_something() -> None:
    for name, why in STARTS_NOTHING_OF_A_TARGET.items():
        assert list(starts(ROOT / name)), name
        assert "`-S`" not in why or '"-S"' in (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("word", ['"-I"', "'-I'"])
def test_isolated_interpreters_are_started_with_the_one_command_line(word: str) -> None:
    """A list that says `-I` and not `-S` starts an interpreter that can import a target's packages."""
    for path in SOURCES:
        if "tests" not in path.parts and path.name != "children.py" and not named(path).startswith("cmd/imprint_"):
            for line in path.read_text("utf-8").splitlines():
                assert word not in line or '"-S"' in line, named(path)
