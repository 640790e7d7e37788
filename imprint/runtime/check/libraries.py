"""Says what supplies a shared library that a GPU build of ONNX Runtime wants: a wheel, the driver or the system. Pure.

Names as found in the wheels of our locks on 2026-11-29. CUDA 12 wheels end in `-cu12`; those for CUDA 13 have no
suffix, except cuDNN's.
"""

from __future__ import annotations

import re

from imprint.values import Record

_PARTS = {
    "cublas": "cublas",
    "cublasLt": "cublas",
    "nvblas": "cublas",
    "cudart": "cuda-runtime",
    "cufft": "cufft",
    "cufftw": "cufft",
    "curand": "curand",
    "nvJitLink": "nvjitlink",
    "nvrtc": "cuda-nvrtc",
    "nvrtc-builtins": "cuda-nvrtc",
}
_DRIVER = frozenset({"cuda", "nvcuda", "nvidia-ml", "nvml", "nvidia-ptxjitcompiler", "nvidia-nvvm"})
_VISUAL_CPP = ("msvcp140", "vcruntime140", "concrt140")
_LINUX = re.compile(r"lib(?P<stem>[\w+-]+?)(?:\.alt)?\.so(?:\.(?P<major>\d+)[\d.]*)?", re.ASCII)
_WINDOWS = re.compile(r"(?P<stem>[\w-]+?)(?:64)?(?:_(?P<major>\d+)(?:_\d+)?)?\.dll", re.ASCII | re.IGNORECASE)

CUDNN_FILES = {"linux": "libcudnn.so.9", "windows": "cudnn64_9.dll"}
"""What a build asks for when an operation needs cuDNN, by operating system; every build we plan uses cuDNN 9."""


class Supplier(Record):
    """What brings a library: `wheel` is its distribution's name, None where no wheel does; `told` ends a sentence."""

    wheel: str | None
    told: str


def supplier_of(library: str, cuda: str | None = None) -> Supplier | None:
    """Return what supplies a library (its file name), None when that is not known.

    `cuda` is the CUDA version that the build was made with ("13.0"); without it the library's own number tells, for
    those that carry CUDA's.
    """
    found = _LINUX.fullmatch(library) or _WINDOWS.fullmatch(library)
    if found is None:
        return None
    stem = found["stem"]
    if stem in _DRIVER:
        return Supplier(None, "it comes with the NVIDIA driver")
    if stem.lower().startswith(_VISUAL_CPP):
        return Supplier(None, "it comes with the Visual C++ runtime of Microsoft")
    part = "cudnn" if stem.split("_")[0] == "cudnn" else _PARTS.get(stem)
    major = _cuda_major(cuda, part, found["major"])
    if part is None or major is None:
        return None
    suffix = f"-cu{major}" if major <= 12 or part == "cudnn" else ""
    wheel = f"nvidia-{part}{suffix}"
    return Supplier(wheel, f"the wheel `{wheel}` supplies it")


def _cuda_major(cuda: str | None, part: str | None, number: str | None) -> int | None:
    if cuda is not None and cuda.split(".")[0].isdigit():
        return int(cuda.split(".")[0])
    # cuRAND, cuFFT and cuDNN count for themselves: 10 and 11, or 12 and 9, whatever CUDA they belong to.
    if number is None or part in {"curand", "cufft", "cudnn"}:
        return None
    return int(number[:2])
