"""Whatever a command is given, no terminal acts on what it prints, and what it prints as JSON is JSON."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from architecture.tree import ROOT, tracked
from imprint_cli.app import main
from imprint_cli.registry import COMMANDS
from leaves.test_printable import acts

EVIL = "e\x1b[31m\x1b]0;title\x07\x9b2J\x7f\u202egnp\u2066\udcff\rover\n"
"""Colours, a window's title, C1, DEL, turned text, what is not UTF-8, and a line drawn over."""

NAME = EVIL.replace("/", "").replace("\n", "")
DOCUMENT = {
    "platform": {"os": "linux", "arch": "x86_64", "libc": {"name": "glibc", "version": EVIL}, "os_version": EVIL},
    "python": {"version": "3.12.4", "abi": None},
    "cpu": {"name": EVIL, "flags": [EVIL]},
    "nvidia": {
        "status": "ok",
        "driver": "580.95.05",
        "cuda": "13.0",
        "libcuda": EVIL,
        "error": EVIL,
        "gpus": [{"index": 0, "uuid": EVIL, "name": EVIL, "compute_capability": "9.9"}],
    },
    "other_gpus": [{"vendor": EVIL, "name": EVIL, "kind": EVIL}],
    "environment": {"CUDA_VISIBLE_DEVICES": EVIL},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home beside a folder with a hostile name."""
    for name in [name for name in os.environ if name.startswith("IMPRINT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def machine_file(folder: Path) -> str:
    path = folder / "machine.json"
    path.write_text(json.dumps(DOCUMENT), "utf-8")
    return str(path)


def broken_interpreter(folder: Path) -> str:
    """Make an environment whose Python writes escapes and fails."""
    python = folder / "evil" / "bin" / "python"
    python.parent.mkdir(parents=True)
    (folder / "evil" / "pyvenv.cfg").write_text(f"version = {EVIL}", "utf-8", "surrogateescape")
    python.write_text("#!/bin/sh\nprintf 'bad \\033[31m\\033]0;t\\007 end\\n' >&2; exit 3\n")
    python.chmod(0o755)
    return str(folder / "evil")


def hostile_packages(folder: Path) -> str:
    """Make an environment with a package of a hostile name and version."""
    prefix = folder / "V"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    packages = next(prefix.glob("lib/python3*/site-packages"))
    info = packages / "onnxruntime_gpu-1.dist-info"
    info.mkdir()
    (packages / "onnxruntime").mkdir()
    (packages / "onnxruntime" / "__init__.py").write_text(f"raise ImportError({EVIL!r})", "utf-8")
    text = f"Name: onnxruntime-gpu\nVersion: 1.\x1b[31m\u202e1\nRequires-Dist: {NAME}\n"
    (info / "METADATA").write_text(text, "utf-8", "surrogateescape")
    (info / "RECORD").write_text(f"onnxruntime/__init__.py,,\nonnxruntime/{NAME},,\n", "utf-8", "surrogateescape")
    return str(prefix)


def hostile_config(folder: Path) -> str:
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text('[model]\nname = "\\u001b[31m"\n"\\u001b[32m" = "\\u202e"\n', "utf-8")
    return "list"


Argument = str | Callable[[Path], str]

CASES: tuple[tuple[Argument, ...], ...] = (
    ("setup", "--device", EVIL),
    ("setup", "--gpu-device", EVIL, "--device", "gpu", "--dry-run"),
    ("setup", "--for", machine_file, "--device", "gpu", "--dry-run"),
    ("setup", "--find-links", EVIL),
    ("setup", "--index-url", EVIL),
    ("setup", "--venv", broken_interpreter),
    ("setup", "--venv", hostile_packages, "--dry-run"),
    ("bootstrap", "--find-links", EVIL),
    ("rollback", EVIL),
    ("prune", "--venv", EVIL),
    ("prune", "--venv", hostile_packages),
    ("bundle", EVIL, "--for", EVIL),
    ("plan", "--machine", machine_file, "--device", "gpu", "--explain"),
    ("plan", "--machine", machine_file, "--device", "gpu", "--gpu-device", EVIL),
    ("plan", "--machine", EVIL),
    ("plan", "--installed", EVIL),
    ("plan", "--python", EVIL),
    ("plan", "--venv", broken_interpreter),
    ("machine", "--venv", broken_interpreter),
    ("devices", EVIL),
    ("check", "--venv", hostile_packages),
    ("check", f"--{NAME}"),
    ("status", "--venv", EVIL),
    ("status", "--venv", hostile_packages),
    ("config", hostile_config),
    ("config", "get", EVIL),
    ("config", "set", "model.device", EVIL),
    ("config", "set", "server.token", EVIL),
    ("config", EVIL),
    ("doctor", EVIL),
    ("doctor", "--explain", EVIL),
    ("doctor", "--venv", hostile_packages),
    ("doctor", "--venv", hostile_packages, "--report"),
    ("doctor", "--venv", broken_interpreter),
    ("embed", "text", "--model", EVIL),
    ("embed", "--input", EVIL),
    ("embed", "text", "--format", EVIL),
    ("embed", "text", "--venv", hostile_packages),
    ("model", "show", EVIL),
    ("model", "remove", EVIL),
    (EVIL,),
    (f"--{NAME}",),
)


def named(case: object) -> str:
    return " ".join(getattr(part, "__name__", str(part)) for part in case).encode("ascii", "replace").decode()  # type: ignore[attr-defined]


def test_every_command_is_given_something() -> None:
    assert set(COMMANDS) <= {case[0] for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=named)
def test_no_terminal_acts_on_what_a_command_says(
    case: tuple[Argument, ...], home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMPRINT_X\x1b[31m", EVIL.replace("\udcff", ""))
    words = [part if isinstance(part, str) else part(home) for part in case]
    main(words)
    out, err = capfd.readouterr()
    assert acts(out, allowed="\n\t") == set()
    assert acts(err, allowed="\n\t") == set()
    assert "Traceback" not in err
    assert "bug in Imprint" not in err
    main([*words, "--json"])
    out, err = capfd.readouterr()
    assert acts(out, allowed="\n") == set()
    assert acts(err, allowed="\n\t") == set()
    documents = out.splitlines() if words[0] in {"setup", "bootstrap"} else [out]
    assert all(isinstance(json.loads(document), dict) for document in documents)


WRITERS = {"human.py", "machine.py"}


@pytest.mark.parametrize("path", tracked("cmd/imprint_cli/*.py"), ids=lambda path: path.name)
def test_nothing_is_written_elsewhere_than_at_the_edge(path: Path) -> None:
    called = {
        ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)
    }
    writes = {name for name in called if name in {"print", "typer.echo", "typer.secho"} or name.endswith(".write")}
    assert not writes or path.name in WRITERS, writes


def test_the_plumbing_writes_printable_text() -> None:
    for name in ("gpu_runtime.py", "onnx_runtime.py"):
        for node in ast.walk(ast.parse((ROOT / "imprint" / name).read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".write"):
                told = ast.unparse(node.args[0])
                assert isinstance(node.args[0], ast.Constant) or "printable" in told or "json.dumps(" in told, told
