"""Every remedy that is a command or a change to files is run, in a sandbox, for a state built for real, and mends it.

What cannot be run here stands in `BY_EYE`, with the reason; the two together are all of them.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diagnosis.test_environments import (
    BASE,
    CPU,
    GPU,
    GPU12,
    WHOLE,
    delete,
    nothing,
    over,
    then_install,
    then_uninstall,
)
from imprint.causes.catalogue import COMMAND, FILE, catalogue
from imprint.runtime.foreign import journal
from imprint.runtime.foreign.journal import Journal
from support.foreign import Foreign, Wheels
from support.played_runtime import played_wheels
from support.remedies import findings, make_installation, perform
from support.sandbox import run_in

pytestmark = pytest.mark.slow

Breakage = Callable[[Foreign], None]


def lose_the_interpreter(env: Foreign) -> None:
    (env.prefix / "bin" / "python").unlink()
    (env.prefix / "bin" / "python").symlink_to(env.root / "nowhere" / "python3")


def break_the_interpreter(env: Foreign) -> None:
    (env.prefix / "bin" / "python").unlink()
    (env.prefix / "bin" / "python").write_text("#!/bin/sh\nexit 3\n", "utf-8")
    (env.prefix / "bin" / "python").chmod(0o755)


def age_the_packages(env: Foreign) -> None:
    env.packages.parent.rename(env.packages.parent.with_name("python3.8"))


def lose_the_cache(env: Foreign) -> None:
    env.uninstall("onnxruntime")
    env.own_uv(
        *("pip", "install", "--quiet", "--link-mode", "symlink", "--no-deps", "--python", str(env.prefix)),
        "onnxruntime==1.31.1",
    )
    shutil.rmtree(env.root / "own cache")


def interrupt_a_change(env: Foreign) -> None:
    store = journal.store_of(env.home, env.prefix)
    store.folder.mkdir(parents=True)
    journal.write_journal(store, Journal("cpu", "1.31.1", "2026-11-29T10:00:00Z"))
    next(env.packages.glob("onnxruntime-*.dist-info/INSTALLER")).unlink()


def put_pipe(pattern: str) -> Breakage:
    """Return a breakage after which whoever reads this file waits for ever."""

    def broken(env: Foreign) -> None:
        path = next(env.packages.glob(pattern))
        path.unlink()
        os.mkfifo(path)

    return broken


def kill_pip(env: Foreign) -> None:
    shutil.copytree(env.packages / "onnxruntime", env.packages / "~nnxruntime")
    info = next(env.packages.glob("onnxruntime-*.dist-info"))
    shutil.copytree(info, info.with_name(info.name.replace("onnxruntime", "~nnxruntime")))


def set_up_for_a_gpu(env: Foreign) -> None:
    env.setup("cuda13")


State = tuple[str, tuple[str, ...], Breakage, str]

STATES: list[State] = [
    ("no runtime", BASE, nothing, "not-installed"),
    ("interpreter gone", CPU, lose_the_interpreter, "interpreter-gone"),
    ("interpreter broken", CPU, break_the_interpreter, "interpreter-unusable"),
    ("interpreter changed", CPU, age_the_packages, "interpreter-changed"),
    ("a file of ours lost", CPU, delete("onnxruntime/part3.py"), "install-incomplete"),
    ("a file of theirs lost", ("numpy==1.26.4", *CPU[1:]), delete("numpy/__init__.py"), "install-incomplete"),
    ("a file nobody needs lost", CPU, delete("userlib"), "install-incomplete"),
    ("the cache gone", CPU, lose_the_cache, "links-dangling"),
    ("our RECORD lost", CPU, delete("onnxruntime-*/RECORD"), "metadata-damaged"),
    ("their RECORD lost", ("numpy==1.26.4", *CPU[1:]), delete("numpy-*/RECORD"), "metadata-damaged"),
    ("our RECORD a pipe", CPU, put_pipe("onnxruntime-*/RECORD"), "metadata-damaged"),
    ("their RECORD a pipe", ("numpy==1.26.4", *CPU[1:]), put_pipe("numpy-*/RECORD"), "metadata-damaged"),
    ("their METADATA a pipe", ("numpy==1.26.4", *CPU[1:]), put_pipe("numpy-*/METADATA"), "metadata-damaged"),
    ("hollow", (*CPU, "onnxruntime-gpu==1.31.1"), then_uninstall("onnxruntime"), "runtime-hollow"),
    (
        "shared files gone",
        (*WHOLE, "nvidia-cudnn-cu12==9.10.2.21"),
        then_uninstall("nvidia-cudnn-cu12"),
        "shared-files-removed",
    ),
    ("pip killed", CPU, kill_pip, "leftovers"),
    ("change interrupted", CPU, interrupt_a_change, "change-interrupted"),
    ("change pending", CPU, set_up_for_a_gpu, "change-pending"),
    ("two builds", CPU, then_install("onnxruntime-gpu==1.31.1"), "duplicate-runtimes"),
    (
        "another build's files",
        CPU,
        over("onnxruntime/capi/build_and_package_info.py", "package_name = 'onnxruntime-x'\n__version__ = '1.31.1'\n"),
        "build-mismatch",
    ),
    ("import fails", (*BASE, "onnxruntime==1.28.0"), nothing, "runtime-import-failed"),
    ("the CPU crashes", (*BASE, "onnxruntime==1.29.0"), nothing, "runtime-crashed"),
    ("the CPU fails", (*BASE, "onnxruntime==1.27.0"), nothing, "cpu-session-failed"),
    ("no NumPy", CPU, delete("numpy", "numpy-*"), "dependency-missing"),
    ("no libraries", GPU, nothing, "runtime-libs-missing"),
    ("an empty placeholder", (*GPU, "nvidia-cublas-cu13==0.0.1"), nothing, "placeholder-package"),
    ("libraries of another CUDA", (*GPU12, "nvidia-cublas==13.0.2.14"), nothing, "cuda-major-mismatch"),
    (
        "libraries that nothing loads",
        (*BASE, "onnxruntime-gpu==1.20.1", "nvidia-cublas-cu12==12.8.4.1"),
        nothing,
        "libs-present-not-loaded",
    ),
    ("two cuDNN", (*WHOLE, "nvidia-cudnn-cu12==9.10.2.21"), nothing, "cudnn-clash"),
]
"""States of a virtual environment: what it holds, how it breaks, and the finding."""

INSTALLATIONS: list[State] = [
    ("two builds", CPU, then_install("onnxruntime-gpu==1.31.1"), "duplicate-runtimes"),
    ("hollow", (*CPU, "onnxruntime-gpu==1.31.1"), then_uninstall("onnxruntime"), "runtime-hollow"),
    ("a file lost", CPU, delete("onnxruntime/part3.py"), "install-incomplete"),
    (
        "another build's files",
        CPU,
        over("onnxruntime/capi/build_and_package_info.py", "package_name = 'onnxruntime-x'\n__version__ = '1.31.1'\n"),
        "build-mismatch",
    ),
]
"""States of a Python that is no virtual environment, which `setup` never changes."""

BY_EYE = {
    "check-crashed": "a bug of ours",
    "gpu-waits": "needs a GPU",
    "ok-cpu": "a choice, nothing is broken",
    "home-not-writable": "tried by the tests of homes",
    "state-unreadable": "tried by the tests of homes",
    "state-damaged": "tried in test_states.py",
    "config-unreadable": "somebody has to know what the line should say",
    "config-invalid": "tried in the tests of `config`",
    "system-library-old": "needs conda",
    "exec-stack-refused": "needs a kernel or glibc that refuses it",
    "install-tree-read-only": "tried in test_real_environments.py",
    "vendor-build-replaced": "a choice, nothing is broken",
    "busy": "waiting",
    "runtime-hangs": "needs a driver that hangs",
    "libs-mixed-sources": "needs a GPU and a toolkit",
    "cudnn-too-new": "needs an old GPU",
    "libs-untested": "needs a GPU",
    "gpu-unavailable": "needs a GPU",
    "gpu-build-without-gpu": "a choice until a GPU is asked for",
    "provider-not-requested": "needs a GPU",
    "provider-failed": "needs a GPU",
    "no-kernel-for-gpu": "needs a GPU",
    "gpu-run-failed": "needs a GPU",
    "embedding-on-cpu": "needs a GPU",
    "not-proved": "needs a GPU",
    "check-stale": "needs a GPU",
    "check-failed": "needs a GPU",
    "model-missing": "tried with the real model",
    "model-damaged": "tried with the real model",
    "model-too-new": "needs a model of tomorrow",
    "embedding-failed": "says where to look",
    "packages-missing": "needs the real packages",
    "secret-exposed": "tried by the tests of the configuration",
    "space-unused": "tried in the tests of `prune`",
    "gpu-portable": "a choice, nothing is broken",
    "device-cpu": "a choice, nothing is broken",
    "driver-too-old": "needs a GPU",
    "gpu-not-found": "needs a GPU",
    "gpu-list-unsupported": "tried in the tests of `config`",
    "smaller-gpu": "needs two GPUs",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the one folder that may be written."""
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def wheels(place: Path) -> Wheels:
    """Make the wheels once."""
    more: dict[str, dict[str, Any]] = {
        "onnxruntime-gpu==1.20.1": {"needs": ["nvidia/cublas/lib/libcublasLt.so.12"], "preload": False},
        "onnxruntime==1.29.0": {"die_cpu": "SIGSEGV"},
        "onnxruntime==1.28.0": {"import": "libonnxruntime.so.1: invalid ELF header"},
        "onnxruntime==1.27.0": {"cpu_error": "bad"},
    }
    return played_wheels(place / "wheels", more)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state[0])
def test_every_remedy_of_a_virtual_environment_mends_it(
    place: Path, tmp_path: Path, wheels: Wheels, state: State
) -> None:
    code = state[3]

    def body() -> None:
        told = findings(made(place / f"{tmp_path.name}-first", wheels, state))
        assert code in told, told
        assert {remedy["kind"] for remedy in told[code]["remedies"]} <= {COMMAND, FILE}
        for number in range(len(told[code]["remedies"])):
            env = made(place / f"{tmp_path.name}-{number}", wheels, state)
            perform(env, findings(env)[code]["remedies"][number])
            assert code not in findings(env)

    run_in(place, body)


@pytest.mark.parametrize("kind", ["image", "conda"])
@pytest.mark.parametrize("state", INSTALLATIONS, ids=lambda state: state[0])
def test_every_remedy_of_an_installation_mends_it(
    place: Path, tmp_path: Path, wheels: Wheels, kind: str, state: State
) -> None:
    """Both builds in an image's own Python or in conda: two pip commands, and no word of `imprint setup`."""
    code = state[3]

    def body() -> None:
        env = Foreign(place / tmp_path.name, wheels)
        env.root.mkdir()
        make_installation(env.prefix)
        if kind == "conda":
            (env.prefix / "conda-meta").mkdir()
        env.install(*state[1])
        state[2](env)
        found = findings(env)[code]
        assert "imprint setup" not in found["fix"]
        commands = perform(env, found["remedies"][0])
        assert all(words[1:3] == ["-m", "pip"] for words in commands)
        assert len(commands) == (2 if code == "duplicate-runtimes" else 1)
        assert code not in findings(env)

    run_in(place, body)


def made(root: Path, wheels: Wheels, state: State) -> Foreign:
    env = Foreign(root, wheels)
    env.create(*state[1])
    state[2](env)
    return env


def test_what_is_not_run_is_read_by_eye_and_nothing_else_is() -> None:
    run_here = {state[3] for state in (*STATES, *INSTALLATIONS)}
    to_run = {
        code
        for code, cause in catalogue().causes.items()
        # What a command says of itself is tried where that command is.
        if cause.section != "errors" and any(remedy.kind in {COMMAND, FILE} for remedy in cause.remedies)
    }
    assert to_run - run_here - BY_EYE.keys() == set()
    assert BY_EYE.keys() - to_run == set()
    assert run_here & BY_EYE.keys() == set()
