"""Tiny wheels that stand for the real ones: two distributions over one folder, libraries over a shared folder.

With them a setup takes a fraction of a second and needs no network: uv, environments, hashes, links and processes are
real, only the computing is not.
"""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imprint.planning.model import Device
from imprint.runtime.check.children import child_environment
from imprint.runtime.check.run import CPU, CUDA, CheckResult, Step

VERSION = "1.31.1"

PROBE = """
import os, sys
import onnxruntime
from onnxruntime.capi import build_and_package_info as info
here = os.path.dirname(onnxruntime.__file__)
library = open(os.path.join(here, "capi", "library.so")).read()
print(info.package_name, info.__version__, library.split()[0])
"""


def wheel(folder: Path, name: str, version: str, files: Mapping[str, str], *, requires: Sequence[str] = ()) -> Path:
    """Write a wheel with a RECORD and return its path. `requires` are its Requires-Dist lines."""
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{_headers(requires)}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: twins\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={_urlsafe(text)},{len(text.encode())}" for path, text in content.items()]
    content[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name_inside, text in content.items():
            archive.writestr(name_inside, text)
    return path


def lock(path: Path, wheels: Mapping[str, Path]) -> None:
    """Write a hashed requirement file that pins `wheels` (keys: `name==version`)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f"{pin} \\\n    --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}" for pin, file in wheels.items()
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def runtime_files(package: str, version: str = VERSION) -> dict[str, str]:
    """Return what a build of ONNX Runtime installs, as far as we look at it."""
    files = {f"onnxruntime/part{number}.py": f"# {package} {number}\n" * 20 for number in range(30)}
    return files | {
        "onnxruntime/__init__.py": f"__version__ = {version!r}\n",
        "onnxruntime/capi/__init__.py": "",
        "onnxruntime/capi/build_and_package_info.py": f"package_name = {package!r}\n__version__ = {version!r}\n",
        "onnxruntime/capi/library.so": f"{package} library\n" * (2000 if package.endswith("gpu") else 1000),
    }


@dataclass(frozen=True)
class Twins:
    """A folder of wheels and the locks `cpu.txt`, `cuda13.txt` and `base.txt` that pin them."""

    root: Path
    pins: dict[str, Path] = field(default_factory=dict)

    @property
    def wheels(self) -> Path:
        """The folder for `--find-links`."""
        return self.root / "wheels"

    def lock_path(self, name: str) -> Path:
        """Return the path of a lock, as `resources.lock_path` does."""
        return self.root / "locks" / name


def make_twins(root: Path, *, parts: int = 0) -> Twins:
    """Write the wheels and the locks below `root`; `parts` more files in each build make linking take longer."""
    twins = Twins(root)
    more = {f"onnxruntime/more/part{number}.py": f"# {number}\n" for number in range(parts)}
    cpu = wheel(twins.wheels, "onnxruntime", VERSION, runtime_files("onnxruntime") | more)
    gpu = wheel(twins.wheels, "onnxruntime-gpu", VERSION, runtime_files("onnxruntime-gpu") | more)
    cublas = wheel(twins.wheels, "nvidia-cublas", "13.0.2", {"nvidia/cu13/lib/libcublas.so.13": "c" * 5000})
    curand = wheel(twins.wheels, "nvidia-curand", "10.4.0", {"nvidia/cu13/lib/libcurand.so.10": "r" * 5000})
    numpy = wheel(twins.wheels, "numpy", "2.4.6", {"numpy/__init__.py": "", "numpy/core.py": "# n\n" * 100})
    lock(twins.lock_path("cpu.txt"), {f"onnxruntime=={VERSION}": cpu})
    lock(
        twins.lock_path("cuda13.txt"),
        {f"onnxruntime-gpu=={VERSION}": gpu, "nvidia-cublas==13.0.2": cublas, "nvidia-curand==10.4.0": curand},
    )
    lock(twins.lock_path("base.txt"), {"numpy==2.4.6": numpy})
    return twins


def loaded(python: Path) -> str:
    """Return what the target really loads, as one line; the error's last line when it does not."""
    environ = child_environment(os.environ)
    ended = subprocess.run([python, "-I", "-c", PROBE], capture_output=True, text=True, check=False, env=environ)
    return (ended.stdout if ended.returncode == 0 else ended.stderr).strip().splitlines()[-1]


def twin_check(python: Path, device: Device | None, environ: Mapping[str, str]) -> CheckResult:
    """Stand for the check: the build must load, and for a GPU it must be the GPU build."""
    del environ
    wanted = "onnxruntime" if device is None else "onnxruntime-gpu"
    seen = loaded(python)
    provider = CPU if device is None else CUDA
    if seen != f"{wanted} {VERSION} {wanted}":
        return CheckResult("failed", "wrong-device", provider, device, f"loaded {seen}")
    return CheckResult("ok", None, provider, device, steps={"conv": Step(ok=True)})


def _headers(requires: Sequence[str]) -> str:
    extras = sorted({line.split("extra == ")[1].strip("\"' ") for line in requires if "extra == " in line})
    return "".join(
        [f"Provides-Extra: {extra}\n" for extra in extras] + [f"Requires-Dist: {line}\n" for line in requires]
    )


def _urlsafe(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
