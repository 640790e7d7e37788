from __future__ import annotations

import json

import pytest

from imprint import resources
from imprint.runtime.check.libraries import supplier_of
from imprint.runtime.distributions.pins import read_lock

CASES = {
    ("libcublasLt.so.13", "13.0"): "nvidia-cublas",
    ("libcublas.so.12", "12.8"): "nvidia-cublas-cu12",
    ("libcublas.so.12", None): "nvidia-cublas-cu12",
    ("libcudart.so.13", None): "nvidia-cuda-runtime",
    ("libcurand.so.10", "13.0"): "nvidia-curand",
    ("libcurand.so.10", "12.8"): "nvidia-curand-cu12",
    ("libcurand.so.10", None): None,
    ("libcufft.so.11", "12.8"): "nvidia-cufft-cu12",
    ("libcufft.so.12", "13.0"): "nvidia-cufft",
    ("libnvrtc.so.13", "13.0"): "nvidia-cuda-nvrtc",
    ("libnvrtc.alt.so.13", "13.0"): "nvidia-cuda-nvrtc",
    ("libnvrtc-builtins.so.13.0", "13.0"): "nvidia-cuda-nvrtc",
    ("libnvJitLink.so.12", None): "nvidia-nvjitlink-cu12",
    ("libcudnn.so.9", "13.0"): "nvidia-cudnn-cu13",
    ("libcudnn_ops.so.9", "12.8"): "nvidia-cudnn-cu12",
    ("libcudnn_engines_runtime_compiled.so.9.16.0", "13.0"): "nvidia-cudnn-cu13",
    ("cublasLt64_13.dll", "13.0"): "nvidia-cublas",
    ("cublas64_12.dll", None): "nvidia-cublas-cu12",
    ("cudart64_13.dll", "13.0"): "nvidia-cuda-runtime",
    ("nvrtc64_130_0.dll", None): "nvidia-cuda-nvrtc",
    ("cudnn64_9.dll", "13.0"): "nvidia-cudnn-cu13",
    ("cudnn_engines_precompiled64_9.dll", "12.8"): "nvidia-cudnn-cu12",
}


@pytest.mark.parametrize(("library", "cuda"), CASES)
def test_a_library_of_nvidias_comes_from_its_wheel(library: str, cuda: str | None) -> None:
    supplier = supplier_of(library, cuda)
    assert (supplier.wheel if supplier else None) == CASES[library, cuda]


def test_what_no_wheel_brings_is_said_so() -> None:
    for library in ("libcuda.so.1", "nvcuda.dll", "libnvidia-ptxjitcompiler.so.1"):
        supplier = supplier_of(library, "13.0")
        assert supplier is not None
        assert (supplier.wheel, supplier.told) == (None, "it comes with the NVIDIA driver")
    runtime = supplier_of("MSVCP140_1.dll")
    assert runtime is not None
    assert "Visual C++" in runtime.told
    for library in ("libstdc++.so.6", "kernel32.dll", "libnvinfer.so.10", "", "libcudart", "lib.so"):
        assert supplier_of(library, "13.0") is None


def test_everything_a_build_links_is_pinned_by_its_lock_or_comes_with_the_driver() -> None:
    """The table of builds and the locks are read from real wheels; the names here have to agree with both."""
    table = json.loads(resources.data_path("builds.json").read_text("utf-8"))
    seen = 0
    for build in table["builds"]:
        for release in build["releases"]:
            pinned = {pin.name for pin in read_lock(resources.lock_path(release["lock"]))}
            for library in {name for place in release["platforms"] for name in place.get("links") or ()}:
                supplier = supplier_of(library, build["toolkit"])
                assert supplier is not None, library
                assert supplier.wheel is None or supplier.wheel in pinned
                seen += 1
    assert seen > 15
