"""`status`, `setup`, `plan --check`, `check`, `doctor` and `embed` tell one story of every environment."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from diagnosis.test_environments import LIBRARIES, STATES, Breakage, Environment
from diagnosis.test_real_environments import Real
from imprint.context import Context
from imprint.operations.setup import SetupOptions, setup
from imprint.planning.model import Device
from imprint.runtime.check.run import CheckResult
from imprint.runtime.distributions import inventory
from support.foreign import Wheels
from support.played_check import played_check
from support.played_runtime import played_wheels
from support.six import ask, contradictions

PLAYED: list[tuple[str, tuple[str, ...], Breakage]] = [
    *(state[:3] for state in STATES),
    *(state[:3] for state in LIBRARIES),
]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    more = {"onnxruntime==1.28.0": {"import": "libonnxruntime.so.1: invalid ELF header"}}
    return played_wheels(tmp_path_factory.mktemp("wheels"), more)


def probing(python: Path, device: Device | None, environ: Mapping[str, str]) -> CheckResult:
    """Check as far as a played runtime goes; the tiny wheels have nothing that embedding needs besides."""
    return replace(played_check(python, device, environ), lacks=("tokenizers", "orjson"))


@pytest.mark.parametrize(("pins", "breakage"), [one[1:] for one in PLAYED], ids=[one[0] for one in PLAYED])
def test_of_an_environment_that_is_played(
    tmp_path: Path,
    wheels: Wheels,
    pins: tuple[str, ...],
    breakage: Breakage,
    request: pytest.FixtureRequest,
) -> None:
    env = Environment(tmp_path, wheels)
    env.make(*pins)
    breakage(env)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "IMPRINT_", "CUDA"))}
    context = Context(env.home, {**environ, "IMPRINT_DEVICE": "cpu"})
    story = ask(context, env.prefix, prove=probing, embeds=False)
    print(story.line(request.node.callspec.id))  # noqa: T201 - shown with `-s`: what people compare
    assert contradictions(story) == []


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Real:
    """Return a place with a home that holds the model, and environments of real wheels."""
    real = Real(tmp_path_factory.mktemp("real"))
    done = setup(Context(real.home, real.environ), SetupOptions(), lambda _: None)
    assert done.ok
    return real


def broken_libstdcxx(real: Real) -> dict[str, str]:
    """Return the surroundings of a process whose loader finds a libstdc++ that is none."""
    folder = real.root / "libraries"
    folder.mkdir(exist_ok=True)
    (folder / "libstdc++.so.6").write_text("not a library\n")
    return {"LD_LIBRARY_PATH": str(folder)}


def without(*names: str) -> Callable[[Real, Path], None]:
    return lambda real, prefix: real.uv("pip", "uninstall", "--quiet", "--python", str(prefix), *names)


def then(*pins: str) -> Callable[[Real, Path], None]:
    return lambda real, prefix: real.install(prefix, *pins)


def shorten(pattern: str) -> Callable[[Real, Path], None]:
    def broken(_: Real, prefix: Path) -> None:
        packages = inventory.packages_folder(prefix)
        assert packages is not None
        file = next(packages.glob(pattern))
        content = file.read_bytes()
        file.unlink()  # it is a link to the cache
        file.write_bytes(content[: len(content) // 2])

    return broken


def at_start(code: str) -> Callable[[Real, Path], None]:
    """Return a breakage by a file of the owner's that Python runs at every start."""

    def broken(_: Real, prefix: Path) -> None:
        packages = inventory.packages_folder(prefix)
        assert packages is not None
        (packages / "sitecustomize.py").write_text(code, "utf-8")

    return broken


def nothing(_: Real, __: Path) -> None:
    """Break nothing."""


EMBEDS = ("onnxruntime==1.31.1", "tokenizers", "orjson")
REAL: list[tuple[str, tuple[str, ...], Callable[[Real, Path], None], str, bool]] = [
    ("whole", EMBEDS, nothing, "cpu", True),
    ("whole, another version", ("onnxruntime==1.26.0", "tokenizers", "orjson"), nothing, "cpu", True),
    ("an old build that does not name itself", ("onnxruntime==1.18.1", "tokenizers", "orjson"), nothing, "cpu", True),
    ("the GPU build", ("onnxruntime-gpu==1.31.1", "tokenizers", "orjson"), nothing, "cpu", True),
    ("nothing but ONNX Runtime", ("onnxruntime==1.31.1",), nothing, "cpu", False),
    ("fastembed and both builds", ("fastembed", "onnxruntime-gpu==1.26.0"), then("onnxruntime==1.26.0"), "cpu", False),
    ("one of two removed", (*EMBEDS, "onnxruntime-gpu==1.31.1"), without("onnxruntime"), "none", False),
    ("no NumPy", EMBEDS, without("numpy"), "none", False),
    ("a library cut short", EMBEDS, shorten("onnxruntime/capi/onnxruntime_pybind11_state*"), "none", False),
    ("no runtime", ("tokenizers", "orjson"), nothing, "none", False),
    ("too old for the model", ("onnxruntime==1.15.1", "numpy<2", "tokenizers", "orjson"), nothing, "cpu", False),
    ("stopped at its start", EMBEDS, at_start("import sys; sys.exit('not today')"), "none", False),
    ("hidden at its start", EMBEDS, at_start("import sys; sys.modules['onnxruntime'] = None"), "none", False),
]


def told_by_all(real: Real, name: str, prefix: Path, **environ: str) -> tuple[str, bool]:
    """Ask all six, demand one story, and return what it runs on and whether embeddings run."""
    story = ask(Context(real.home, {**real.environ, **environ}), prefix)
    print(story.line(name))  # noqa: T201 - shown with `-s`: what people compare
    assert contradictions(story) == []
    assert story.status.data is not None
    return story.status.data["runs_on"], story.status.data["embeds"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pins", "breakage", "runs_on", "embeds"), [one[1:] for one in REAL], ids=[one[0] for one in REAL]
)
def test_of_an_environment_with_real_wheels(  # noqa: PLR0917 - as above
    real: Real,
    pins: tuple[str, ...],
    breakage: Callable[[Real, Path], None],
    runs_on: str,
    embeds: bool,
    request: pytest.FixtureRequest,
) -> None:
    prefix = real.make("env", *pins)
    breakage(real, prefix)
    assert told_by_all(real, request.node.callspec.id, prefix) == (runs_on, embeds)
    # The check of the first round was recorded: what is said must not change for that.
    assert told_by_all(real, f"{request.node.callspec.id}, again", prefix) == (runs_on, embeds)


@pytest.mark.slow
def test_of_a_good_environment_in_surroundings_that_turn_bad(real: Real) -> None:
    """What was proved and recorded does not hold when the loader finds other libraries, or the model has moved."""
    prefix = real.make("good", *EMBEDS)
    assert told_by_all(real, "good", prefix) == ("cpu", True)
    assert told_by_all(real, "libstdc++ broken", prefix, **broken_libstdcxx(real)) == ("none", False)
    assert told_by_all(real, "mended", prefix) == ("cpu", True)
    shutil.move(real.home.models, real.root / "elsewhere")
    assert told_by_all(real, "model moved away", prefix) == ("cpu", False)
    shutil.move(real.root / "elsewhere", real.home.models)
    assert told_by_all(real, "model back", prefix) == ("cpu", True)
