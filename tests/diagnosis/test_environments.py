"""Somebody's own environments, broken for real with real uv and tiny wheels: the cause is named and the fix works."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from imprint.context import Context
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.runtime.foreign import journal
from imprint.runtime.foreign.journal import Journal
from support.fake_cuda import FakeDriver, WithoutHardware, compile_driver, device_line
from support.foreign import CUDA13, NVIDIA, Foreign, Wheels
from support.played_check import home_with_model, played_check
from support.played_runtime import played_wheels

BASE = ("numpy==2.4.6", "protobuf==7.36.2", "packaging==26.4", "flatbuffers==25.12.19")
CPU = (*BASE, "onnxruntime==1.31.1")
GPU = (*BASE, "onnxruntime-gpu==1.31.1")
GPU12 = (*BASE, "onnxruntime-gpu==1.26.0")
WHOLE = (*GPU, *(f"{name}=={NVIDIA[name][0]}" for name in CUDA13))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """Make the wheels once."""
    more: dict[str, dict[str, Any]] = {
        "onnxruntime-gpu==1.20.1": {"needs": ["nvidia/cublas/lib/libcublasLt.so.12"], "preload": False},
        "onnxruntime==1.29.0": {"die_cpu": "SIGILL"},
        "onnxruntime==1.28.0": {"import": "libonnxruntime.so.1: invalid ELF header"},
    }
    return played_wheels(tmp_path_factory.mktemp("wheels"), more)


class Environment(Foreign):
    """An environment that is copied from an earlier one with the same pins: making one takes longer than looking."""

    def make(self, *pins: str) -> None:
        """Make the environment with `pins` and the owner's packages."""
        template = self.wheels.root / "templates" / str(abs(hash(pins)))
        if not template.exists():
            self.create(*pins)
            shutil.copytree(self.prefix, template, symlinks=True)
        else:
            shutil.copytree(template, self.prefix, symlinks=True)


@pytest.fixture
def env(tmp_path: Path, wheels: Wheels) -> Environment:
    """Give a place for an environment, beside a home that has a model."""
    env = Environment(tmp_path, wheels)
    home_with_model(env.home)
    return env


def context_of(env: Environment, **environ: str) -> Context:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "IMPRINT_", "CUDA"))}
    return Context(env.home, {**inherited, **environ})


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> FakeDriver:
    """Make a driver that shows one GPU which every build covers."""
    return compile_driver(tmp_path_factory.mktemp("driver") / "lib")


def look(
    env: Environment, path: Path | None = None, driver: FakeDriver | None = None, **environ: str
) -> Mapping[str, Any]:
    """Return what doctor says of the environment, on this machine or on one with a GPU that is asked for."""
    options = DoctorOptions(venv=path or env.prefix)
    if driver is None:
        return diagnose(context_of(env, **environ), options, prove=played_check).data
    driver.play("version 13000", "nvml_driver 580.95.05", device_line())
    context = context_of(env, **driver.environ(IMPRINT_DEVICE="gpu", **environ))
    return diagnose(context, options, host=WithoutHardware(context.environ), prove=played_check).data


def told(seen: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the findings that are warnings or errors, by code."""
    return {found["code"]: found for found in seen["findings"] if found["status"] in {"warning", "error"}}


def delete(*patterns: str) -> Callable[[Foreign], None]:
    """Return a breakage that deletes what the patterns match in the folder of packages."""

    def broken(env: Foreign) -> None:
        for pattern in patterns:
            found = list(env.packages.glob(pattern))
            assert found
            for path in found:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    return broken


def over(path: str, text: str) -> Callable[[Foreign], None]:
    """Return a breakage that writes other content to a file, without touching the cache it is linked to."""

    def broken(env: Foreign) -> None:
        file = next(env.packages.glob(path))
        file.unlink()
        file.write_text(text, "utf-8")

    return broken


def then_install(*pins: str) -> Callable[[Foreign], None]:
    return lambda env: env.install(*pins)


def then_uninstall(*names: str) -> Callable[[Foreign], None]:
    return lambda env: env.uninstall(*names)


def nothing(_: Foreign) -> None:
    """Break nothing: what is installed is the fault."""


SETUP = "imprint setup --venv"
Breakage = Callable[[Foreign], None]

STATES: list[tuple[str, tuple[str, ...], Breakage, str, str]] = [
    ("cpu on top of gpu", GPU12, then_install("onnxruntime==1.26.0"), "duplicate-runtimes", "cpu"),
    ("gpu on top of cpu", CPU, then_install("onnxruntime-gpu==1.31.1"), "duplicate-runtimes", "cpu"),
    ("another version on top", GPU12, then_install("onnxruntime==1.31.1"), "duplicate-runtimes", "cpu"),
    ("one of two removed", (*CPU, "onnxruntime-gpu==1.31.1"), then_uninstall("onnxruntime"), "runtime-hollow", "none"),
    ("all modules gone", CPU, delete("onnxruntime"), "runtime-hollow", "none"),
    ("killed install", CPU, delete("onnxruntime", "onnxruntime-*/INSTALLER"), "install-incomplete", "none"),
    ("one library short", CPU, delete("onnxruntime/part3.py"), "install-incomplete", "none"),
    ("a library cut short", CPU, over("onnxruntime/capi/library.so", "onnxruntime"), "install-incomplete", "cpu"),
    ("no RECORD", CPU, delete("onnxruntime-*/RECORD"), "metadata-damaged", "cpu"),
    ("no METADATA", CPU, delete("onnxruntime-*/METADATA"), "metadata-damaged", "cpu"),
    (
        "other files",
        CPU,
        over("onnxruntime/capi/build_and_package_info.py", "package_name = 'onnxruntime-x'\n__version__ = '1.31.1'\n"),
        "build-mismatch",
        "cpu",
    ),
    ("import fails", (*BASE, "onnxruntime==1.28.0"), nothing, "runtime-import-failed", "none"),
    ("no runtime", BASE, nothing, "not-installed", "none"),
]


@pytest.mark.parametrize(
    ("pins", "breakage", "code", "runs_on"), [state[1:] for state in STATES], ids=[state[0] for state in STATES]
)
def test_the_state_is_named_and_setup_mends_it(
    env: Environment, pins: tuple[str, ...], breakage: Breakage, code: str, runs_on: str
) -> None:
    env.make(*pins)
    breakage(env)
    seen = look(env)
    found = told(seen)
    assert code in found, found
    assert (found[code]["runs_on"], seen["runs_on"]) == (runs_on, runs_on)
    assert SETUP in found[code]["fix"]
    env.setup("cpu", repair="--repair" in found[code]["fix"])
    after = look(env)
    assert told(after) == {}
    assert after["runs_on"] == "cpu"


LIBRARIES: list[tuple[str, tuple[str, ...], Breakage, str]] = [
    ("no libraries at all", GPU, nothing, "runtime-libs-missing"),
    ("no libraries for CUDA 12", GPU12, nothing, "runtime-libs-missing"),
    ("an empty placeholder", (*GPU, "nvidia-cublas-cu13==0.0.1"), nothing, "placeholder-package"),
    (
        "libraries of CUDA 13 for a build of CUDA 12",
        (*GPU12, "nvidia-cublas==13.0.2.14"),
        nothing,
        "cuda-major-mismatch",
    ),
]


@pytest.mark.parametrize(
    ("pins", "breakage", "code"), [state[1:] for state in LIBRARIES], ids=[state[0] for state in LIBRARIES]
)
def test_missing_libraries_are_named_with_what_brings_them(
    env: Environment, driver: FakeDriver, pins: tuple[str, ...], breakage: Breakage, code: str
) -> None:
    """On a machine with a GPU that can use them."""
    env.make(*pins)
    breakage(env)
    found = told(look(env, driver=driver))
    assert code in found
    assert "libcublasLt.so" in found[code]["seen"]
    command = found[code]["fix"].partition("`")[2].partition("`")[0]
    if pins[: len(GPU)] == GPU and code == "runtime-libs-missing":
        assert command.startswith(SETUP), "the planned build is installed: setup brings what it lacks"
        env.setup("cuda13")
    else:
        wanted = [word for word in command.split() if word.startswith("nvidia-")]
        assert wanted
        # The word alone where uv is on the path, else where it is.
        assert Path(command.split()[0]).name == "uv"
        assert command.split()[1:4] == ["pip", "install", "--python"]
        env.install(*(pin for pin in wanted if pin in env.wheels.made or "==" not in pin))
    assert code not in told(look(env, driver=driver))


@pytest.mark.parametrize(
    ("pins", "breakage"), [state[1:3] for state in LIBRARIES], ids=[state[0] for state in LIBRARIES]
)
def test_where_no_gpu_can_use_them_no_library_is_to_be_installed(
    env: Environment, pins: tuple[str, ...], breakage: Breakage
) -> None:
    """2 GB would be fetched for nothing; the CPU build is what helps, and it frees space."""
    env.make(*pins)
    breakage(env)
    found = told(look(env))
    assert len(found) == 1
    fix = next(iter(found.values()))["fix"]
    assert "nvidia-" not in fix
    assert SETUP in fix
    assert "installs the CPU build, which frees" in fix
    env.setup("cpu")
    assert told(look(env)) == {}


def test_libraries_that_nothing_loads_are_not_to_be_installed_again(env: Environment, driver: FakeDriver) -> None:
    env.make(*BASE, "onnxruntime-gpu==1.20.1", "nvidia-cublas-cu12==12.8.4.1")
    found = told(look(env, driver=driver))
    assert "libs-present-not-loaded" in found
    assert "does not help" in found["libs-present-not-loaded"]["fix"]


def test_packages_that_share_files_take_them_along(env: Environment) -> None:
    """Two cuDNN packages over one folder; removing one leaves the other listed and hollow."""
    env.make(*WHOLE, "nvidia-cudnn-cu12==9.10.2.21")
    assert set(told(look(env))) == {"cudnn-clash"}
    env.uninstall("nvidia-cudnn-cu12")
    found = told(look(env))
    assert "shared-files-removed" in found
    env.own_uv(
        "pip",
        "install",
        "--quiet",
        "--reinstall",
        "--no-deps",
        "--python",
        str(env.prefix),
        f"nvidia-cudnn-cu13=={NVIDIA['nvidia-cudnn-cu13'][0]}",
    )
    assert told(look(env)) == {}


def test_a_provider_cut_short_kills_the_session_and_not_doctor(env: Environment) -> None:
    env.make(*WHOLE)
    over("onnxruntime/capi/libonnxruntime_providers_cuda.so", "too short")(env)
    seen = look(env, IMPRINT_DEVICE="gpu")
    found = told(seen)
    assert {"install-incomplete", "runtime-crashed"} <= set(found)
    assert "SIGBUS" in found["runtime-crashed"]["seen"]
    env.setup("cpu", repair=True)
    assert told(look(env)) == {}


def test_an_instruction_that_the_processor_lacks(env: Environment) -> None:
    env.make(*BASE, "onnxruntime==1.29.0")
    seen = look(env)
    assert set(told(seen)) == {"cpu-instruction-missing"}
    assert seen["runs_on"] == "none"


def test_a_missing_dependency_is_named_and_can_be_installed(env: Environment) -> None:
    env.make(*CPU)
    delete("numpy", "numpy-*")(env)
    found = told(look(env))
    assert found["dependency-missing"]["fix"] == f"`{SETUP} '{env.prefix}'`"
    env.setup("cpu")
    assert told(look(env)) == {}


def test_links_into_a_cache_that_is_gone(env: Environment) -> None:
    env.make()
    env.own_uv("pip", "install", "--quiet", "--link-mode", "symlink", "--no-deps", "--python", str(env.prefix), *CPU)
    shutil.rmtree(env.root / "own cache")
    found = told(look(env))
    assert "links-dangling" in found
    assert found["links-dangling"]["runs_on"] == "none"


def test_an_interpreter_that_is_gone(env: Environment) -> None:
    env.make(*CPU)
    python = env.prefix / "bin" / "python"
    python.unlink()
    python.symlink_to(env.root / "nowhere" / "python3")
    seen = look(env)
    found = told(seen)
    assert found["interpreter-gone"]["runs_on"] == seen["runs_on"] == "none"
    assert "venv --clear" in found["interpreter-gone"]["fix"]
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", env.prefix], check=True)
    assert set(told(look(env))) == {"not-installed"}
    env.setup("cpu")
    assert told(look(env)) == {}


def test_an_interpreter_that_does_not_start(env: Environment) -> None:
    env.make(*CPU)
    python = env.prefix / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nexit 3\n", "utf-8")
    python.chmod(0o755)
    found = told(look(env))
    assert set(found) == {"interpreter-unusable"}
    assert "exit code 3" in found["interpreter-unusable"]["seen"]


def test_an_interpreter_of_another_version(env: Environment) -> None:
    env.make(*CPU)
    folder = env.packages.parent
    folder.rename(folder.with_name("python3.8"))
    found = told(look(env))
    assert "interpreter-changed" in found
    assert found["interpreter-changed"]["runs_on"] == "none"


@pytest.mark.parametrize("name", ["nowhere", "a file", "an empty folder"])
def test_what_is_no_environment(env: Environment, name: str) -> None:
    path = env.root / name
    if name == "a file":
        path.write_text("", "utf-8")
    elif name == "an empty folder":
        path.mkdir()
    seen = look(env, path)
    assert set(told(seen)) == {"not-an-environment"}
    assert seen["runs_on"] == "none"


def test_a_setup_that_would_be_refused_is_not_what_to_run(env: Environment) -> None:
    """A Python that is no virtual environment can be looked at; `setup --venv` never changes it."""
    env.make(*BASE)
    (env.prefix / "pyvenv.cfg").unlink()
    found = told(look(env))
    assert "not-installed" in found
    assert "imprint setup" not in found["not-installed"]["fix"]
    assert "python3 -m venv" in found["not-installed"]["fix"]


def test_an_environment_made_again_with_another_python_is_healthy(env: Environment) -> None:
    env.make(*CPU)
    old = env.prefix / "lib" / "python3.8" / "site-packages"
    shutil.copytree(env.packages / "userlib", old / "userlib")
    assert told(look(env)) == {}
    assert not env.prepare("cpu").replacement.uninstall


def test_a_change_that_did_not_end(env: Environment) -> None:
    env.make(*CPU)
    store = journal.store_of(env.home, env.prefix)
    store.folder.mkdir(parents=True)
    journal.write_journal(store, Journal("cpu", "1.31.1", "2026-11-29T10:00:00Z"))
    # Another home, or the owner, may have finished it since: a journal alone is nothing to report.
    assert told(look(env)) == {}
    next(env.packages.glob("onnxruntime-*.dist-info/INSTALLER")).unlink()
    assert "change-interrupted" in told(look(env))
    env.setup("cpu")
    assert told(look(env)) == {}


def test_damage_to_what_embedding_does_not_need_is_a_warning(env: Environment) -> None:
    env.make(*CPU)
    delete("userlib")(env)
    found = told(look(env))
    assert {code: one["status"] for code, one in found.items()} == {"install-incomplete": "warning"}


@pytest.mark.parametrize(
    ("path", "code"), [("numpy/__init__.py", "install-incomplete"), ("numpy-*/RECORD", "metadata-damaged")]
)
def test_what_its_owner_pinned_is_installed_again_in_that_version(env: Environment, path: str, code: str) -> None:
    """No lock of ours has it, so `setup --repair` would leave it as it is."""
    env.make("numpy==1.26.4", *BASE[1:], "onnxruntime==1.31.1")
    delete(path)(env)
    found = told(look(env))[code]
    assert found["status"] == "error"
    command = shlex.split(found["fix"].strip("`"))
    assert (Path(command[0]).name, *command[1:3]) == ("uv", "pip", "install")
    assert command[-1] == "numpy==1.26.4"
    env.own_uv(*command[1:])
    assert told(look(env)) == {}


HEALTHY: dict[str, tuple[str, ...]] = {
    "the CPU build": CPU,
    "an older CPU build": (*BASE, "onnxruntime==1.26.0"),
    "the whole GPU build": WHOLE,
    "the whole CUDA 12 build": (*GPU12, "nvidia-cublas-cu12==12.8.4.1", "nvidia-cudnn-cu12==9.10.2.21"),
    "packages like torch's beside it": (
        *CPU,
        "asks-for-cuda12==2.0",
        "nvidia-cublas-cu12==12.8.4.1",
        "nvidia-nccl-cu12==2.27.0",
    ),
    "an older numpy": ("numpy==1.26.4", *BASE[1:], "onnxruntime==1.26.0"),
}


@pytest.mark.parametrize("pins", HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_environment_has_nothing_to_tell(env: Environment, pins: tuple[str, ...]) -> None:
    env.make(*pins)
    before = stamps(env.prefix)
    seen = look(env)
    assert told(seen) == {}
    assert seen["runs_on"] == "cpu"
    assert stamps(env.prefix) == before, "doctor changed the environment"


@pytest.mark.slow
def test_an_environment_with_pip_is_healthy_and_repaired_with_pip(env: Environment) -> None:
    env.create(*CPU, pip=True)
    assert told(look(env)) == {}
    delete("numpy", "numpy-*")(env)
    found = told(look(env))
    assert set(found) == {"dependency-missing"}
    assert SETUP in found["dependency-missing"]["fix"]
    env.install("numpy==2.4.6")
    assert told(look(env)) == {}


def test_the_cpu_by_choice_needs_no_cuda_libraries(env: Environment) -> None:
    """The state is named, as a choice."""
    env.make(*GPU)
    seen = look(env, IMPRINT_DEVICE="cpu")
    assert told(seen) == {}
    assert "runtime-libs-missing" in {found["code"] for found in seen["findings"]}


def test_an_environment_that_setup_made_is_healthy(env: Environment) -> None:
    env.make(*GPU12)
    env.setup("cpu")
    assert told(look(env)) == {}


def test_a_report_of_an_environment_names_no_place(env: Environment) -> None:
    env.make(*CPU)
    context = context_of(env)
    shown = replace(context, environ={**context.environ, "HOME": str(env.root)})
    text = str(diagnose(shown, DoctorOptions(venv=env.prefix, report=True), prove=played_check).data["report"])
    assert str(env.root) not in text
    assert "onnxruntime 1.31.1" in text
    assert "None" not in text
    assert "driver, kernel, cuda: " in text


def stamps(prefix: Path) -> dict[str, tuple[int, int]]:
    """Return every file below an environment with size and time, compiled ones too."""
    return {
        str(path.relative_to(prefix)): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in prefix.rglob("*")
    }
