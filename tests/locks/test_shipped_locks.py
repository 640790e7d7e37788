"""What must hold for the locks as they are, whatever versions they pin."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.utils import canonicalize_name

from imprint_dev.layout import LOCKS
from imprint_dev.lockfile import Entry, parse_lockfile

BUILDS = ("cpu", "cpu-1.23", "cuda13", "cuda13-1.28", "cuda12", "cuda12-py310")
TARGET = (*BUILDS, "base", "model-minilm")


def entries(name: str) -> list[Entry]:
    return parse_lockfile((LOCKS / f"{name}.txt").read_text(encoding="utf-8"))


def versions(name: str) -> dict[str, str]:
    return {entry.name: entry.version for entry in entries(name)}


@pytest.mark.parametrize("path", sorted(LOCKS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_lock_is_hashed_and_says_how_it_was_made(path: object) -> None:
    text = (LOCKS / f"{getattr(path, 'stem', '')}.txt").read_text(encoding="utf-8")
    assert f"python -m imprint_dev relock {getattr(path, 'stem', '')}" in text
    assert parse_lockfile(text)
    assert "://" not in text, "a lock names no address"
    assert not re.search(r"(^|\s)/\w", text, re.MULTILINE), "a lock names no path of a machine"


@pytest.mark.parametrize("name", BUILDS)
def test_a_build_lock_holds_exactly_one_onnx_runtime(name: str) -> None:
    assert len([pin for pin in versions(name) if pin.startswith("onnxruntime")]) == 1


def test_the_cpu_build_has_the_version_of_the_cuda13_build() -> None:
    assert versions("cpu")["onnxruntime"] == versions("cuda13")["onnxruntime-gpu"]


@pytest.mark.parametrize("name", TARGET)
def test_no_target_gets_onnx_or_a_client_for_a_hub(name: str) -> None:
    assert not {"onnx", "ml-dtypes", "huggingface-hub", "requests", "httpx"} & versions(name).keys()


@pytest.mark.parametrize("name", ["cuda13", "cuda13-1.28"])
def test_cuda13_locks_are_trimmed_and_of_one_toolkit_minor(name: str) -> None:
    pins = versions(name)
    nvidia = {pin for pin in pins if pin.startswith("nvidia-")}
    assert nvidia == {"nvidia-cublas", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cudnn-cu13", "nvidia-curand"}
    for pin in ("nvidia-cublas", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime"):
        assert pins[pin].startswith("13.0."), pin
    markers = {entry.name: entry.marker for entry in entries(name)}
    assert markers["nvidia-curand"] == "sys_platform == 'linux'"


@pytest.mark.parametrize("name", ["cuda12", "cuda12-py310"])
def test_cuda12_locks_keep_the_last_cudnn_for_pascal_and_volta(name: str) -> None:
    assert versions(name)["nvidia-cudnn-cu12"].startswith("9.10.")
    assert {"nvidia-cufft-cu12", "nvidia-nvjitlink-cu12"} <= versions(name).keys()


@pytest.mark.parametrize("name", BUILDS)
def test_locks_of_one_target_share_no_package(name: str) -> None:
    """A target holds a build, the base and a model; two pins of one package there could contradict each other."""
    assert not versions(name).keys() & versions("base").keys()
    assert not versions(name).keys() & versions("model-minilm").keys()


def test_the_tests_run_on_the_tool_environment_that_is_shipped() -> None:
    development = {(entry.name, entry.marker): entry.version for entry in entries("dev")}
    for entry in entries("tool"):
        assert development[(entry.name, entry.marker)] == entry.version, entry.name


def test_the_tool_lock_is_made_of_what_the_distribution_declares() -> None:
    declared = tomllib.loads((LOCKS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    source = (LOCKS / "tool.in").read_text(encoding="utf-8").splitlines()
    assert [line for line in source if line and not line.startswith("#")] == declared


def test_the_installer_has_one_version_everywhere() -> None:
    assert versions("uv")["uv"] == versions("tool")["uv"] == versions("dev")["uv"]


@pytest.mark.parametrize("path", sorted(LOCKS.glob("*.txt")), ids=lambda path: path.stem)
def test_names_are_canonical(path: object) -> None:
    for entry in entries(getattr(path, "stem", "")):
        assert entry.name == canonicalize_name(entry.name)
