"""Does what a remedy says, command by command, and keeps count of the remedies that were tried."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imprint.context import Context
from imprint.operations.doctor import DoctorOptions, diagnose
from support.foreign import BUILDS, Foreign
from support.played_check import home_with_model, played_check


def findings(env: Foreign, **environ: str) -> dict[str, dict[str, Any]]:
    """Return what doctor finds wrong with an environment beside a home that has a model, by code."""
    home_with_model(env.home)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "IMPRINT_", "CUDA"))}
    seen = diagnose(Context(env.home, {**kept, **environ}), DoctorOptions(venv=env.prefix), prove=played_check).data
    return {found["code"]: found for found in seen["findings"] if found["status"] in {"warning", "error"}}


def perform(env: Foreign, remedy: Mapping[str, str], build: str = "cpu") -> list[list[str]]:
    """Run every command of a remedy for an environment, in order, and return them; `build` is the planned one.

    Installers find the tiny wheels alone. Fails for a command that nobody could type as it is.
    """
    commands = [shlex.split(text) for text in re.findall(r"`([^`]+)`", remedy["do"])]
    assert commands, f"a remedy of kind {remedy['kind']} holds a command: {remedy['do']}"
    for words in commands:
        assert not any(word.isupper() or word.startswith("$") for word in words), words
        run(env, words, build)
    return commands


def run(env: Foreign, words: list[str], build: str) -> None:
    """Run one command."""
    if words[:2] == ["imprint", "setup"]:
        assert words[2:4] == ["--venv", str(env.prefix)]
        assert set(words[4:]) <= {"--repair", "--device", "cpu"}
        env.setup(build, repair="--repair" in words)
    elif words[1:3] == ["pip", "install"] or words[1:3] == ["pip", "uninstall"]:
        assert Path(words[0]).name == "uv"
        env.own_uv(*words[1:])
    elif words[1:3] == ["-m", "pip"]:
        environ = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(env.wheels.folder), "PIP_NO_DEPS": "1"}
        subprocess.run(words, check=True, capture_output=True, env=environ)
    elif words[:3] == ["python3", "-m", "venv"]:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", *words[3:]], check=True)
    else:
        assert words[:2] == ["rm", "-r"], words
        subprocess.run(words, check=True)


def make_installation(prefix: Path) -> None:
    """Make a Python that is no virtual environment, as an image or conda holds one: with this one's own library."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(os.path.realpath(os.__file__)).parent
    library = prefix / "lib" / version
    (library / "site-packages").mkdir(parents=True)
    for entry in base.iterdir():
        if entry.name not in {"site-packages", "__pycache__"}:
            (library / entry.name).symlink_to(entry)
    (prefix / "bin").mkdir()
    shutil.copy2(os.path.realpath(sys.executable), prefix / "bin" / version)
    for name in ("python", "python3"):
        (prefix / "bin" / name).symlink_to(version)
    subprocess.run([prefix / "bin" / "python", "-m", "ensurepip"], check=True, capture_output=True)


def name_of(build: str) -> str:
    """Return the distribution of a build with its version."""
    return "==".join(BUILDS[build][:2])
