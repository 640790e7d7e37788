"""Where files may be, how they are named, how long they get, and what no file may name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from architecture.tree import ROOT, tracked

LONGEST = 500
VAGUE = {"utils", "util", "common", "helpers", "helper", "manager", "base", "misc"}
# Written in pieces, so that this file does not name what it looks for.
FORBIDDEN = [
    "py" + "pi.org",
    "python" + "hosted.org",
    "registry." + "npmjs",
    "deb.deb" + "ian.org",
    "/wo" + "rk/",
    "/ro" + "ot/.",
    "/tm" + "p/dev",
    "/home/" + "runner",
    ".py" + "env",
]
SOURCES = tracked("imprint/*.py", "cmd/*.py", "tests/*.py")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_cmd_is_a_source_root_and_no_package() -> None:
    """A module `cmd` of ours on the path would shadow Python's own, which the debugger imports."""
    loose = [path.name for path in (ROOT / "cmd").glob("*.py")]
    assert loose == []


def test_every_folder_of_cmd_is_one_of_ours() -> None:
    folders = {path.relative_to(ROOT / "cmd").parts[0] for path in tracked("cmd/*.py")}
    assert all(re.fullmatch(r"imprint_[a-z]+", folder) for folder in folders), folders


@pytest.mark.parametrize("folder", ["locks", "data"])
def test_what_ships_as_data_is_no_code(folder: str) -> None:
    assert list((ROOT / folder).rglob("*.py")) == []


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_a_module_is_short_and_named_for_what_it_does(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{lines} lines: split it"
    assert path.stem not in VAGUE
    assert path.parent.name not in VAGUE


def test_no_file_names_a_registry_or_a_path_of_a_machine() -> None:
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{named(path)} names {word}" for word in FORBIDDEN if word in text]
    assert found == []


def test_every_ignored_rule_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    ruff = tomllib.loads(text)["tool"]["ruff"]["lint"]
    ignored = [*ruff["ignore"], *(rule for rules in ruff["per-file-ignores"].values() for rule in rules)]
    for rule in ignored:
        lines = [line for line in text.splitlines() if f'"{rule}"' in line]
        assert lines, rule
        assert all(re.search(r"#\s*\S.{10,}", line) for line in lines), f"{rule} has no reason"
