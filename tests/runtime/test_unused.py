"""Which distributions nothing needs: decided from installed metadata alone, here written by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint import resources
from imprint.onnx_runtime import lock_of
from imprint.planning.builds import Build, Wheel, parse_builds
from imprint.planning.gates import wheel_for
from imprint.planning.model import Machine, Platform, Python
from imprint.runtime.distributions.metadata import InstalledDistribution
from imprint.runtime.distributions.pins import marker_environment, parse_lock
from imprint.runtime.distributions.shipped import read_shipped
from imprint.runtime.distributions.unused import Known, find_unused, holds, parse_requirements, satisfied

ENVIRONMENT = marker_environment("3.11.7") | {"sys_platform": "linux"}
SHIPPED = read_shipped()
KNOWN = Known(SHIPPED.ever, SHIPPED.elsewhere)
BASE = ("numpy", "protobuf", "flatbuffers", "packaging")
CPU = {"onnxruntime", *BASE}
CUDA13 = {
    "onnxruntime-gpu",
    "nvidia-cublas",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-runtime",
    "nvidia-cudnn-cu13",
    "nvidia-curand",
    *BASE,
}
GPU_REQUIRES = (
    "numpy>=1.21.6",
    "protobuf",
    'nvidia-cufft~=12.0; extra == "cuda"',
    'nvidia-cudnn-cu13~=9.0; extra == "cudnn"',
    'sympy; extra == "symbolic"',
)


def held(name: str, version: str = "1.0", *requires: str, folder: str | None = None) -> InstalledDistribution:
    extras = tuple(line.split('extra == "')[1].strip('"') for line in requires if "extra ==" in line)
    top = folder if folder is not None else ("nvidia" if name.startswith("nvidia-") else name.replace("-", "_"))
    top = "onnxruntime" if name.startswith("onnxruntime") else top
    return InstalledDistribution(
        name, version, tuple(requires), tuple(dict.fromkeys(extras)), {f"{top}/__init__.py": "", f"{top}/{name}.so": ""}
    )


def full_gpu() -> list[InstalledDistribution]:
    """Return an environment made from the full extras: cuFFT and nvJitLink as well."""
    return [
        *(held(name) for name in BASE),
        held("onnxruntime-gpu", "1.31.1", *GPU_REQUIRES),
        held("nvidia-cublas", "13.0", "nvidia-cuda-nvrtc"),
        held("nvidia-cuda-nvrtc"),
        held("nvidia-cuda-runtime"),
        held("nvidia-cudnn-cu13", "9.16", "nvidia-cublas"),
        held("nvidia-curand"),
        held("nvidia-cufft", "12.0", "nvidia-nvjitlink"),
        held("nvidia-nvjitlink"),
    ]


def names(installed: list[InstalledDistribution], planned: set[str], known: Known = KNOWN) -> list[str]:
    return [found.name for found in find_unused(installed, planned, known, ENVIRONMENT)]


def nvidia_of(installed: list[InstalledDistribution]) -> list[str]:
    return sorted(found.name for found in installed if found.name.startswith("nvidia-"))


def test_a_full_gpu_environment_that_moves_to_the_cpu_loses_the_gpu_set_alone() -> None:
    installed = full_gpu()
    assert names(installed, CPU) == [*nvidia_of(installed), "onnxruntime-gpu"]


def test_the_cpu_with_leftover_libraries_loses_them() -> None:
    left = [held("nvidia-cublas-cu12"), held("nvidia-cudnn-cu12"), held("nvidia-cufft"), held("nvidia-cublas")]
    installed = [held("onnxruntime", "1.31.1"), *(held(name) for name in BASE), *left]
    assert names(installed, CPU) == nvidia_of(installed)


def test_a_gpu_environment_loses_what_its_lock_dropped() -> None:
    assert names(full_gpu(), CUDA13) == ["nvidia-cufft", "nvidia-nvjitlink"]


def test_moving_to_the_gpu_loses_the_cpu_build_alone() -> None:
    installed = [held("onnxruntime", "1.31.1", "numpy", "protobuf"), *(held(name) for name in BASE)]
    assert names(installed, CUDA13) == ["onnxruntime"]


def test_what_the_owners_packages_require_stays_with_what_that_requires() -> None:
    installed = [*full_gpu(), held("torchlike", "2.0", "nvidia-cufft>=11")]
    assert names(installed, CUDA13) == []
    assert "nvidia-nvjitlink" not in names(installed, CPU)
    assert "nvidia-cublas" in names(installed, CPU)


def test_a_requirement_whose_marker_does_not_hold_keeps_nothing() -> None:
    installed = [*full_gpu(), held("torchlike", "2.0", "nvidia-cufft ; sys_platform == 'win32'")]
    assert "nvidia-cufft" in names(installed, CUDA13)


def test_an_extra_keeps_what_it_requires_when_something_asks_for_it() -> None:
    optional = held("helper", "1.0", 'nvidia-cufft>=99; extra == "gpu"')
    assert "nvidia-cufft" in names([*full_gpu(), optional], CUDA13)
    asking = held("app", "1.0", "helper[gpu]")
    assert "nvidia-cufft" not in names([*full_gpu(), optional, asking], CUDA13)
    assert "nvidia-cufft" not in names([asking, optional, *full_gpu()], CUDA13)


def test_an_extra_counts_as_asked_for_when_all_it_requires_is_there_and_not_through_us() -> None:
    installed = [*full_gpu(), held("tensorlike", "2.0", 'nvidia-cufft==1.0; extra == "and-cuda"')]
    installed = [found if found.name != "nvidia-cufft" else held("nvidia-cufft", "1.0") for found in installed]
    assert "nvidia-cufft" not in names(installed, CUDA13)
    ours = Known(SHIPPED.ever, SHIPPED.elsewhere, receipt={"nvidia-cufft": "1.0"})
    assert "nvidia-cufft" in names(installed, CUDA13, ours)


def test_a_requirement_on_a_build_keeps_neither_the_other_build_nor_its_libraries() -> None:
    installed = [*full_gpu(), held("embedder", "1.0", "onnxruntime-gpu[cuda,cudnn]")]
    assert names(installed, CPU) == [*nvidia_of(full_gpu()), "onnxruntime-gpu"]


def test_a_neighbour_in_the_same_folder_stays_unless_we_put_it_there() -> None:
    installed = [*full_gpu(), held("nvidia-nccl-cu12", "2.27"), held("nvidia-ml-py", "13", folder="pynvml")]
    assert "nvidia-nccl-cu12" not in names(installed, CPU)
    assert "nvidia-ml-py" not in names(installed, CPU)
    ours = Known(SHIPPED.ever, SHIPPED.elsewhere, receipt={"nvidia-nccl-cu12": "2.27", "nvidia-ml-py": "13"})
    assert "nvidia-nccl-cu12" in names(installed, CPU, ours)
    assert "nvidia-ml-py" not in names(installed, CPU, ours)


def test_a_requirement_of_a_build_goes_only_when_we_put_it_there() -> None:
    old = held("onnxruntime", "1.23.2", "sympy", "numpy")
    installed = [old, held("sympy", "1.14", "mpmath"), held("mpmath", "1.3"), *(held(name) for name in BASE)]
    assert names(installed, CUDA13) == ["onnxruntime"]
    ours = Known(SHIPPED.ever, SHIPPED.elsewhere, receipt={"sympy": "1.14", "mpmath": "1.2"})
    assert names(installed, CUDA13, ours) == ["onnxruntime", "sympy"]


def test_what_another_requirement_file_of_ours_names_stays() -> None:
    known = Known(SHIPPED.ever, frozenset({"nvidia-cufft"}))
    # It stays, and so does what it requires.
    assert names(full_gpu(), CUDA13, known) == []


def test_what_an_interrupted_run_was_removing_goes() -> None:
    known = Known(SHIPPED.ever, SHIPPED.elsewhere, marked=frozenset({"leftover"}))
    assert names([*full_gpu(), held("leftover")], CUDA13, known) == ["leftover", "nvidia-cufft", "nvidia-nvjitlink"]


def test_plugins_and_tools_named_like_a_build_are_none() -> None:
    tools = InstalledDistribution("onnxruntime-tools", "1.7", files={"onnxruntime_tools/__init__.py": ""})
    genai = held("onnxruntime-genai")
    assert names([*full_gpu(), tools, genai], CUDA13) == ["nvidia-cufft", "nvidia-nvjitlink"]


def test_unreadable_metadata_asks_for_nothing_and_breaks_nothing() -> None:
    odd = InstalledDistribution("odd", None, ("not a requirement !!", "nvidia-cufft ; nonsense == 'x'"))
    assert names([*full_gpu(), odd], CUDA13) == ["nvidia-cufft", "nvidia-nvjitlink"]


POOL = [
    "a",
    "b",
    "nvidia-cufft",
    "nvidia-nvjitlink",
    "nvidia-cublas",
    "nvidia-nccl-cu12",
    "onnxruntime",
    "onnxruntime-gpu",
    "numpy",
]


@given(st.lists(st.tuples(st.sampled_from(POOL), st.lists(st.sampled_from(POOL), max_size=3)), max_size=9))
def test_nothing_that_remains_ever_loses_a_requirement_that_is_no_build(made: list[tuple[str, list[str]]]) -> None:
    installed = [held(name, "1.0", *requires) for name, requires in dict(made).items()]
    for planned in (CPU, CUDA13):
        gone = set(names(installed, planned))
        assert gone == set(names(installed[::-1], planned))
        assert not gone & planned
        assert all(name.startswith(("nvidia-", "onnxruntime")) for name in gone)
        for found in installed:
            if found.name in gone or found.name.startswith("onnxruntime") or found.name in planned:
                continue
            assert not {name for name in found.requires if name.startswith("nvidia-")} & gone


def test_every_name_of_every_lock_of_a_build_is_known() -> None:
    assert {"nvidia-cufft", "nvidia-nvjitlink", "nvidia-cublas-cu12", "onnxruntime", "onnxruntime-gpu"} <= SHIPPED.ever
    assert "tokenizers" in SHIPPED.elsewhere
    assert "onnxruntime" not in SHIPPED.elsewhere


def test_a_lock_is_read_with_its_markers() -> None:
    text = (
        "# note\na==1 ; sys_platform == 'win32' \\\n    --hash=sha256:00\n    # via b\n"
        "B_c==2.0 \\\n    --hash=sha256:11 \\\n    --hash=sha256:22\n"
    )
    first, second = parse_lock(text)
    assert (first.name, first.version, first.marker) == ("a", "1", 'sys_platform == "win32"')
    assert (second.name, second.version, second.marker) == ("b-c", "2.0", None)
    assert second.text.count("--hash") == 2


def _made(packages: Path, name: str, version: str, *requires: str) -> None:
    info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = "".join(f"Requires-Dist: {line}\n" for line in requires)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{lines}\n")
    (info / "RECORD").write_text(f"{info.name}/RECORD,,\n")
    (info / "INSTALLER").write_text("uv")


def _plumbing(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "IMPRINT_HOME": str(tmp_path / "home")}
    argv = [sys.executable, "-m", "imprint.onnx_runtime", *arguments]
    root = Path(parse_builds.__code__.co_filename).parents[2]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=environ, cwd=root)


def test_the_plumbing_prints_one_distribution_a_line(tmp_path: Path) -> None:
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    _made(packages, "onnxruntime-gpu", "1.31.1", *GPU_REQUIRES)
    _made(packages, "nvidia-cufft", "12.0", "nvidia-nvjitlink")
    _made(packages, "nvidia-nvjitlink", "13.0")
    _made(packages, "numpy", "2.4.6")
    ended = _plumbing(tmp_path, "unused", "cuda13", "--venv", str(tmp_path / "env"))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "nvidia-cufft\nnvidia-nvjitlink\n", "")
    ended = _plumbing(tmp_path, "unused", "cpu", f"--venv={tmp_path / 'env'}")
    assert ended.stdout == "nvidia-cufft\nnvidia-nvjitlink\nonnxruntime-gpu\n"
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "expected `unused`"),
        (["unused"], 2, "expected `unused`"),
        (["unused", "cpu", "--what"], 2, "unknown option: --what"),
        (["unused", "cpu", "--venv"], 2, "--venv needs"),
        (["unused", "cuda14", "--venv", "ENV"], 2, "no build is named `cuda14`; the builds are cuda13"),
        (["unused", "cpu", "--venv", "/nonexistent"], 2, "is not an environment"),
        (["unused", "cuda12-py310", "--venv", "ENV"], 1, "cuda12-py310 has no wheels for Python 3.11"),
        (["unused", "cpu"], 1, "no runtime of its own yet"),
    ],
)
def test_the_plumbing_says_what_is_wrong_in_one_line(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    environment = tmp_path / "env"
    (environment / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    ended = _plumbing(tmp_path, *[str(environment) if word == "ENV" else word for word in arguments])
    assert ended.returncode == code
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert said in ended.stderr


SYSTEMS = {"linux": "linux", "windows": "win32", "macos": "darwin"}
MACHINES = {"x86_64": ("x86_64", "AMD64"), "aarch64": ("aarch64", "arm64", "ARM64")}
TABLE = parse_builds(json.loads(resources.data_path("builds.json").read_text("utf-8")), {}, "")


@pytest.mark.parametrize("build", TABLE.builds, ids=lambda build: build.name)
def test_the_lock_is_the_one_that_planning_takes_there(build: Build) -> None:
    """On every system, architecture and Python that a build has wheels for."""
    for wheel in build.wheels:
        for python in wheel.pythons:
            machine = Machine(platform=Platform(wheel.os, wheel.arch), python=Python(f"{python[0]}.{python[1]}.1"))
            planned = wheel_for(build, machine)
            assert isinstance(planned, Wheel)
            for name in MACHINES[wheel.arch]:
                markers = {"sys_platform": SYSTEMS[wheel.os], "platform_machine": name}
                assert lock_of(build, f"{python[0]}.{python[1]}.1", markers) == planned.lock


def test_an_intel_mac_keeps_what_its_own_lock_pins() -> None:
    cpu = TABLE.find("cpu")
    assert cpu is not None
    assert lock_of(cpu, "3.12.4", {"sys_platform": "darwin", "platform_machine": "x86_64"}) == "cpu-1.23.txt"
    assert lock_of(cpu, "3.12.4", {"sys_platform": "darwin", "platform_machine": "arm64"}) == "cpu.txt"


@pytest.mark.parametrize("version", ["9" * 5000, "nonsense", "1!", ""])
def test_an_absurd_version_satisfies_nothing_and_stops_nothing(version: str) -> None:
    [requirement] = parse_requirements(["numpy>=1"])
    assert not satisfied(requirement, version)


def test_an_absurd_requirement_is_no_obstacle() -> None:
    lines = [
        "numpy>=" + "9" * 5000,
        "x; nonsense > '1'",
        "-r /etc/passwd",
        "x @ file:///y",
        "x; python_version < 'x.y'",
    ]
    for requirement in parse_requirements(lines):
        holds(requirement, {"python_version": "3.11"})
