"""An environment with both real builds in it becomes exactly the planned one. Needs the network, about 300 MB."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from imprint.paths import Home
from imprint.planning.model import Plan
from imprint.runtime.check.run import run_check
from imprint.runtime.distributions import inventory
from imprint.runtime.distributions.metadata import read_held
from imprint.runtime.distributions.shipped import read_shipped
from imprint.runtime.foreign import inplace
from imprint.runtime.installer.uv import find_uv
from support.foreign import tree_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PLAN = Plan("cpu", "cpu.txt", "1.31.1", None, "device-cpu", "model.device is cpu")


def test_both_real_builds_end_as_the_cpu_build_that_computes(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}
    home = Home(tmp_path / "home")
    home.root.mkdir()
    prefix = tmp_path / "their environment"
    uv = find_uv(home, environ)

    def theirs(*arguments: str) -> None:
        subprocess.run(
            [uv.executable, "--no-config", *arguments], check=True, env={**environ, "UV_CACHE_DIR": str(home.cache)}
        )

    theirs("venv", "--python", sys.executable, str(prefix))
    theirs("pip", "install", "--python", str(prefix), "numpy==2.4.6", "protobuf", "flatbuffers", "packaging", "six")
    owners = tree_of(next(prefix.glob("lib/*/site-packages")))
    theirs("pip", "install", "--python", str(prefix), "--no-deps", "onnxruntime==1.31.1")
    theirs("pip", "install", "--python", str(prefix), "--no-deps", "onnxruntime-gpu==1.31.1")

    seen = inventory.inspect(prefix)
    assert {found.name for found in seen.runtime_distributions} == {"onnxruntime", "onnxruntime-gpu"}
    shipped = read_shipped()
    for found in read_held(seen):
        if found.is_build:
            assert (
                tuple(line for line in found.requires if "extra ==" not in line)
                == shipped.requires[f"{found.name}=={found.version}"]
            )

    prepared = inplace.prepare(prefix, PLAN, home)
    assert [(change.name, change.to) for change in prepared.replacement.changes] == [
        ("onnxruntime", "1.31.1"),
        ("onnxruntime-gpu", None),
    ]
    started = time.perf_counter()
    outcome = inplace.apply(prepared, uv, lambda _: None)
    print(f"\nin place, both builds to the CPU's: {time.perf_counter() - started:.2f} s")  # noqa: T201 - a figure
    assert (outcome.package, outcome.version) == ("onnxruntime", "1.31.1")
    check = run_check(prefix / "bin" / "python", None, environ)
    assert check.ok, check.detail
    tree = tree_of(next(prefix.glob("lib/*/site-packages")))
    assert {path: digest for path, digest in tree.items() if path in owners} == owners
    assert {path.split("/")[0] for path in {*tree} - {*owners}} == {"onnxruntime", "onnxruntime-1.31.1.dist-info"}
    assert inventory.inspect(prefix, deep=True).problems == ()
    started = time.perf_counter()
    assert not inplace.apply(inplace.prepare(prefix, PLAN, home), uv, lambda _: None).changed
    print(f"in place, nothing to do: {time.perf_counter() - started:.2f} s")  # noqa: T201 - a figure


def test_the_real_build_of_python_3_10_comes_whole_and_goes_whole(tmp_path: Path) -> None:
    """What it requires brings scripts, a manual page and a `.pth` file besides packages."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}
    home, prefix = Home(tmp_path / "home"), tmp_path / "their environment"
    home.root.mkdir()
    uv = find_uv(home, environ)
    uv.create(prefix, Path(sys.executable))
    before = everything_in(prefix)
    old = Plan("cpu", "cpu-1.23.txt", "1.23.2", None, "device-cpu", "model.device is cpu")
    for plan, page in ((old, True), (PLAN, False)):
        assert inplace.apply(inplace.prepare(prefix, plan, home), uv, lambda _: None).version == plan.version
        assert inventory.inspect(prefix, deep=True).problems == ()
        assert not inplace.prepare(prefix, plan, home).pending
        assert (prefix / "share" / "man" / "man1" / "isympy.1").exists() is page
    assert {path.split("/")[0] for path in everything_in(prefix) - before} == {"bin", "lib"}


def everything_in(prefix: Path) -> set[str]:
    return {path.relative_to(prefix).as_posix() for path in prefix.rglob("*")}
