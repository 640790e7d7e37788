"""Wheels of an ONNX Runtime that plays its part: it imports, makes sessions and fails as its script says.

uv, environments, hashes, links and processes are real, and so is the child that looks; only the computing is played.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.foreign import BUILDS, NVIDIA, RUNTIME_REQUIRES, Wheels, make_wheels
from support.twins import VERSION, Twins, lock, runtime_files, wheel

_INIT = """
import json, os, signal, sys, time
__version__ = {version!r}
_here = os.path.dirname(__file__)
with open(os.path.join(_here, "play.json")) as file:
    play = json.load(file)
with open(os.path.join(_here, "capi", "library.so")) as file:
    if file.read().split()[0] != {package!r}:
        raise ImportError("the library is another build's")
if not os.path.exists(os.path.join(_here, "part3.py")):
    raise ImportError("libonnxruntime.so.1: cannot open shared object file: No such file or directory")
if play.get("import"):
    raise ImportError(play["import"])


def die(how):
    if how == "hang":
        time.sleep(600)
    if how != "SIGKILL":
        signal.signal(getattr(signal, how), signal.SIG_DFL)
    os.kill(os.getpid(), getattr(signal, how))


def get_available_providers():
    return play["available"]


if play.get("preload", True):
    def preload_dlls():
        print("Failed to load nothing at all")
        play["preloaded"] = True


class SessionOptions:
    intra_op_num_threads = 0


class InferenceSession:
    def __init__(self, content, options=None, providers=None):
        self.asked = providers[0]
        part = "gpu" if self.asked == "CUDAExecutionProvider" else "cpu"
        provider = os.path.join(_here, "capi", "libonnxruntime_providers_cuda.so")
        if part == "gpu" and os.path.exists(provider) and os.path.getsize(provider) == 9:
            die("SIGBUS")
        if play.get("die_" + part):
            die(play["die_" + part])
        self.got = providers
        if part == "gpu":
            self.got = play["session"]
            packages = os.path.dirname(_here)
            for need in play.get("needs", ()):
                there = os.path.exists(os.path.join(packages, need)) and play.get("preloaded")
                if not there and self.got[0] != "CPUExecutionProvider":
                    self.got = ["CPUExecutionProvider"]
                    sys.stderr.write(play["missing"].replace("LIBRARY", os.path.basename(need)))
            sys.stderr.write(play.get("talk", ""))
            sys.stderr.flush()

    def get_providers(self):
        return self.got

    def run(self, _, operands):
        if play.get("cpu_error") and self.got[0] == "CPUExecutionProvider":
            raise RuntimeError(play["cpu_error"])
        if play.get("run_error") and self.got[0] == "CUDAExecutionProvider":
            raise RuntimeError(play["run_error"])
        return [operands["x"]]
"""

CPU = ["AzureExecutionProvider", "CPUExecutionProvider"]
CUDA = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
MISSING = (
    "[E:onnxruntime:Default] Failed to load library /x/capi/libonnxruntime_providers_cuda.so with error: "
    "LIBRARY: cannot open shared object file: No such file or directory\n"
)
"""What ONNX Runtime writes when the loader does not find a library."""
NUMPY = {"numpy/__init__.py": "def ones(shape, dtype):\n    return list(shape)\n"}


def played_files(package: str, version: str, **play: Any) -> dict[str, str]:  # noqa: ANN401 - JSON
    """Return the files of a build that plays `play`; without anything it works, a GPU build on its GPU."""
    gpu = package == "onnxruntime-gpu"
    script = {"available": CUDA if gpu else CPU, "session": CUDA[1:] if gpu else CPU[1:], "missing": MISSING, **play}
    files = runtime_files(package, version)
    files["onnxruntime/__init__.py"] = _INIT.format(version=version, package=package)
    files["onnxruntime/play.json"] = json.dumps(script)
    files[f"onnxruntime/capi/libonnxruntime.so.{version}"] = f"{package} {version}\n" * 500
    if gpu:
        cuda = "13.0" if version >= "1.27" else "12.8"
        files["onnxruntime/capi/build_and_package_info.py"] += f"cuda_version = {cuda!r}\n"
        files["onnxruntime/capi/libonnxruntime_providers_cuda.so"] = f"cuda {version}\n" * 500
    return files


def played_twins(root: Path) -> Twins:
    """Write the wheels and locks of `twins.make_twins` with a runtime that plays."""
    twins = Twins(root)
    cpu = wheel(twins.wheels, "onnxruntime", VERSION, played_files("onnxruntime", VERSION))
    gpu = wheel(twins.wheels, "onnxruntime-gpu", VERSION, played_files("onnxruntime-gpu", VERSION))
    cublas = wheel(twins.wheels, "nvidia-cublas", "13.0.2", {"nvidia/cu13/lib/libcublas.so.13": "c" * 5000})
    curand = wheel(twins.wheels, "nvidia-curand", "10.4.0", {"nvidia/cu13/lib/libcurand.so.10": "r" * 5000})
    numpy = wheel(twins.wheels, "numpy", "2.4.6", NUMPY)
    lock(twins.lock_path("cpu.txt"), {f"onnxruntime=={VERSION}": cpu})
    lock(
        twins.lock_path("cuda13.txt"),
        {f"onnxruntime-gpu=={VERSION}": gpu, "nvidia-cublas==13.0.2": cublas, "nvidia-curand==10.4.0": curand},
    )
    lock(twins.lock_path("base.txt"), {"numpy==2.4.6": numpy})
    return twins


def played_wheels(root: Path, more: Mapping[str, Mapping[str, Any]] | None = None) -> Wheels:
    """Write the wheels and locks of `foreign.make_wheels` with runtimes that play, and `more` of them.

    `more` maps pins (`onnxruntime-gpu==1.28.0`) to what that build plays.
    """
    wheels = make_wheels(root)
    scripts: dict[str, Mapping[str, Any]] = {
        "onnxruntime==1.31.1": {},
        "onnxruntime==1.26.0": {},
        "onnxruntime-gpu==1.31.1": {"needs": ["nvidia/cu13/lib/libcublasLt.so.13"]},
        "onnxruntime-gpu==1.26.0": {"needs": ["nvidia/cublas/lib/libcublasLt.so.12"]},
    }
    for pin, play in {**scripts, **(more or {})}.items():
        name, _, version = pin.partition("==")
        wheels.add(name, version, played_files(name, version, **play), RUNTIME_REQUIRES)
    for pin in ("numpy==2.4.6", "numpy==1.26.4", "numpy==1.20.0"):
        wheels.add("numpy", pin.partition("==")[2], NUMPY)
    for name, file in (
        ("nvidia-cublas", "cu13/lib/libcublasLt.so.13"),
        ("nvidia-cublas-cu12", "cublas/lib/libcublasLt.so.12"),
        ("nvidia-cudnn-cu12", "cudnn/lib/libcudnn.so.9"),
        ("nvidia-cudnn-cu13", "cudnn/lib/libcudnn.so.9"),
    ):
        wheels.add(name, NVIDIA[name][0], {f"nvidia/{file}": f"{name}\n" * 300}, [])
    wheels.add("nvidia-cublas-cu13", "0.0.1", {"nvidia_cublas_cu13/__init__.py": ""}, [])
    for build in BUILDS:
        lock(wheels.lock(build), {pin: wheels.made[pin] for pin in wheels.pins(build)})
    return wheels
