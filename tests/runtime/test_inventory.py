from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from imprint.runtime.check.proof import surroundings
from imprint.runtime.check.reads import needs_of
from imprint.runtime.distributions.damage import words_of
from imprint.runtime.distributions.inventory import Problem, RuntimePackage, inspect, is_runtime, normalize
from imprint.runtime.distributions.records import hash_is
from imprint.runtime.installer.startup_output import files_run_at_start
from imprint.runtime.target import Target
from support.twins import runtime_files, wheel


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """Make an environment with the CPU build and one more package, as uv leaves it."""
    packages = tmp_path / "env" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    _install(packages, wheel(tmp_path / "wheels", "onnxruntime", "1.31.1", runtime_files("onnxruntime")))
    _install(packages, wheel(tmp_path / "wheels", "flat.buffers", "25.12", {"flatbuffers/__init__.py": "x"}))
    return tmp_path / "env"


def _install(packages: Path, file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        archive.extractall(packages)
    info = next(packages.glob(f"{'-'.join(file.name.split('-')[:2])}.dist-info"))
    (info / "INSTALLER").write_text("uv")


def _packages(prefix: Path) -> Path:
    return prefix / "lib" / "python3.12" / "site-packages"


def test_a_whole_environment_has_no_problems(prefix: Path) -> None:
    seen = inspect(prefix, deep=True)
    assert seen.problems == ()
    assert seen.versions == {"flat-buffers": "25.12", "onnxruntime": "1.31.1"}
    assert seen.runtime == RuntimePackage("onnxruntime", "1.31.1", None)
    assert [found.name for found in seen.runtime_distributions] == ["onnxruntime"]


def test_no_environment_is_an_empty_inventory(tmp_path: Path) -> None:
    seen = inspect(tmp_path)
    assert seen.packages is None
    assert seen.distributions == ()


def test_packages_of_an_earlier_python_are_not_those_of_todays(prefix: Path, tmp_path: Path) -> None:
    """`python3.13 -m venv` over an environment of 3.12 leaves the old folder where it was."""
    (prefix / "lib" / "python3.13" / "site-packages").mkdir(parents=True)
    (prefix / "bin").mkdir()
    for series in ("3.12", "3.13"):
        real = tmp_path / f"python{series}"
        real.touch()
        (prefix / "bin" / "python").unlink(missing_ok=True)
        (prefix / "bin" / "python").symlink_to(real)
        assert inspect(prefix).packages == prefix / "lib" / f"python{series}" / "site-packages"


def test_each_damage_is_its_own_problem(prefix: Path) -> None:
    packages = _packages(prefix)
    info = packages / "onnxruntime-1.31.1.dist-info"
    (packages / "onnxruntime" / "part1.py").unlink()
    (packages / "onnxruntime" / "part2.py").write_text("")
    (info / "INSTALLER").unlink()
    assert set(inspect(prefix).problems) == {
        Problem("onnxruntime", "no-installer"),
        Problem("onnxruntime", "missing", "onnxruntime/part1.py"),
        Problem("onnxruntime", "size", "onnxruntime/part2.py"),
    }
    shutil.rmtree(info)
    info.mkdir()
    assert {problem.kind for problem in inspect(prefix).problems} == {"no-metadata", "no-record", "no-installer"}


@pytest.mark.parametrize("odd", ["device", "pipe", "folder"])
@pytest.mark.parametrize("file", ["METADATA", "RECORD"])
def test_metadata_that_is_no_file_is_called_that_and_not_read(prefix: Path, file: str, odd: str) -> None:
    path = _packages(prefix) / "onnxruntime-1.31.1.dist-info" / file
    put_in_place_of(path, odd)
    kind = f"odd-{file.lower()}"
    assert kind in {problem.kind for problem in inspect(prefix, deep=True).problems}
    assert words_of(kind) == f"its {file} is not a regular file"


def put_in_place_of(path: Path, odd: str) -> None:
    """Put something endless, something that blocks, or a folder where a file was."""
    path.unlink()
    if odd == "device":
        path.symlink_to("/dev/zero")
    elif odd == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("odd", ["device", "pipe", "folder"])
def test_nothing_that_is_no_file_is_read_to_its_end(tmp_path: Path, prefix: Path, odd: str) -> None:
    """Whoever reads files of others does it with a limit and only where they are files."""
    start, module = _packages(prefix) / "start.pth", _packages(prefix) / "module.py"
    start.write_text("import module\n")
    module.touch()
    for path in (module, start):
        put_in_place_of(path, odd)
        assert files_run_at_start(prefix) == []
    config, library = tmp_path / "pyvenv.cfg", _packages(prefix) / "onnxruntime" / "part1.py"
    config.write_text("home = /usr/bin\n")
    put_in_place_of(config, odd)
    put_in_place_of(library, odd)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    target = Target(tmp_path, tmp_path / "bin" / "python", managed=True)
    assert target.fault == "its `pyvenv.cfg` is gone or damaged"
    assert surroundings(target, {}, ())
    assert not hash_is(library, "sha256=x")
    assert needs_of(config) is None
    assert inspect(prefix, deep=True).problems


def test_a_byte_that_changed_is_seen_only_when_every_file_is_hashed(prefix: Path) -> None:
    path = _packages(prefix) / "onnxruntime" / "part1.py"
    path.write_bytes(b"X" + path.read_bytes()[1:])
    assert inspect(prefix).problems == ()
    assert inspect(prefix, deep=True).problems == (Problem("onnxruntime", "hash", "onnxruntime/part1.py"),)


@pytest.mark.parametrize("record", [b"", b"\xff\xfe\x00", b'"unclosed', b",,,\n,,\n", b"\0\n"])
def test_a_broken_record_is_a_problem_not_an_error(prefix: Path, record: bytes) -> None:
    (_packages(prefix) / "onnxruntime-1.31.1.dist-info" / "RECORD").write_bytes(record)
    assert inspect(prefix).problems


def test_both_builds_in_one_folder_are_both_seen(prefix: Path, tmp_path: Path) -> None:
    _install(
        _packages(prefix), wheel(tmp_path / "wheels", "onnxruntime-gpu", "1.31.1", runtime_files("onnxruntime-gpu"))
    )
    seen = inspect(prefix)
    assert [found.name for found in seen.runtime_distributions] == ["onnxruntime", "onnxruntime-gpu"]
    assert seen.runtime == RuntimePackage("onnxruntime-gpu", "1.31.1", None)
    assert {problem.distribution for problem in seen.problems} == {"onnxruntime"}


def test_a_hollow_folder_says_nothing_about_itself(prefix: Path) -> None:
    shutil.rmtree(_packages(prefix) / "onnxruntime" / "capi")
    assert inspect(prefix).runtime == RuntimePackage()


@pytest.mark.parametrize(
    ("beside", "package"), [("libonnxruntime_providers_cuda.so", "onnxruntime-gpu"), (None, "onnxruntime")]
)
def test_a_build_that_does_not_name_itself_is_not_hollow(prefix: Path, beside: str | None, package: str) -> None:
    """Builds before 1.21 have no `build_and_package_info.py`."""
    capi = _packages(prefix) / "onnxruntime" / "capi"
    (capi / "build_and_package_info.py").unlink()
    (capi / "onnxruntime_pybind11_state.cpython-312-x86_64-linux-gnu.so").touch()
    if beside is not None:
        (capi / beside).touch()
    (capi.parent / "__init__.py").write_text('"""x"""\n__version__ = "1.17.3"\n', encoding="utf-8")
    assert inspect(prefix).runtime == RuntimePackage(package, "1.17.3")


@pytest.mark.parametrize("name", ["onnxruntime-qnn", "onnxruntime-genai-cuda"])
def test_a_plug_in_named_like_a_build_is_none(prefix: Path, tmp_path: Path, name: str) -> None:
    """The onnxruntime-qnn of today requires a build and lies beside it; it used to be one."""
    files = {f"{name.replace('-', '_')}/__init__.py": "x"}
    _install(_packages(prefix), wheel(tmp_path / "wheels", name, "2.7.0", files))
    assert [found.name for found in inspect(prefix).runtime_distributions] == ["onnxruntime"]


@pytest.mark.parametrize(
    ("name", "owns"),
    [
        ("onnxruntime", True),
        ("onnxruntime-gpu", True),
        ("onnxruntime-directml", True),
        ("onnxruntime-extensions", False),
        ("onnxruntime-ep-webgpu", False),
        ("onnx", False),
    ],
)
def test_which_distributions_own_the_folder(name: str, *, owns: bool) -> None:
    assert is_runtime(normalize(name)) is owns
