"""Environments of somebody else's, made of tiny wheels, and what has to be true of them after a change.

uv, `python -m venv`, hashes, links and processes are real; the wheels have the real names and folders.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from imprint.paths import Home
from imprint.planning.model import Plan
from imprint.runtime.events import Event
from imprint.runtime.foreign import inplace
from imprint.runtime.foreign.inplace import InplaceOutcome, InplacePlan
from imprint.runtime.installer.sources import Sources
from imprint.runtime.installer.uv import Uv, find_uv
from support.twins import lock, runtime_files, wheel

CUDA13 = ("nvidia-cublas", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-curand", "nvidia-cudnn-cu13")
CUDA12 = (
    "nvidia-cublas-cu12",
    "nvidia-cuda-nvrtc-cu12",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cudnn-cu12",
    "nvidia-cufft-cu12",
)
BASE = ("flatbuffers==25.12.19", "numpy==2.4.6", "packaging==26.4", "protobuf==7.36.2")
NVIDIA = {
    "nvidia-cublas": ("13.0.2.14", ["nvidia-cuda-nvrtc"]),
    "nvidia-cuda-nvrtc": ("13.0.88", []),
    "nvidia-cuda-runtime": ("13.0.96", []),
    "nvidia-curand": ("10.4.0.35", []),
    "nvidia-cudnn-cu13": ("9.16.0.29", ["nvidia-cublas"]),
    "nvidia-cufft": ("12.0.0.61", ["nvidia-nvjitlink"]),
    "nvidia-nvjitlink": ("13.0.88", []),
    "nvidia-cublas-cu12": ("12.8.4.1", []),
    "nvidia-cuda-nvrtc-cu12": ("12.8.93", []),
    "nvidia-cuda-runtime-cu12": ("12.8.90", []),
    "nvidia-cudnn-cu12": ("9.10.2.21", ["nvidia-cublas-cu12"]),
    "nvidia-cufft-cu12": ("11.3.3.83", []),
    "nvidia-nccl-cu12": ("2.27.0", []),
}
RUNTIME_REQUIRES = (
    "flatbuffers",
    "numpy>=1.21.6",
    "packaging",
    "protobuf>=4.25.8",
    'nvidia-cufft~=12.0; extra == "cuda"',
    'nvidia-cudnn-cu13~=9.0; extra == "cudnn"',
)
BUILDS = {
    "cpu": ("onnxruntime", "1.31.1", ()),
    "cuda13": ("onnxruntime-gpu", "1.31.1", CUDA13),
    "cuda12": ("onnxruntime-gpu", "1.26.0", CUDA12),
}
"""What each lock pins beside `BASE`."""

OWNERS = ("userlib==1.0", "asks-for-runtime==2.0")
"""Packages of the owner's that every environment holds."""


@dataclass(frozen=True)
class Wheels:
    """A folder of wheels and the locks `cpu.txt`, `cuda13.txt` and `cuda12.txt` that pin some of them."""

    root: Path
    made: dict[str, Path] = field(default_factory=dict)
    references: dict[tuple[str, ...], dict[str, str]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder for `--find-links`."""
        return self.root / "wheels"

    def lock(self, build: str) -> Path:
        """Return the lock of a build."""
        return self.root / "locks" / f"{build}.txt"

    def add(self, name: str, version: str, files: dict[str, str], requires: Sequence[str] = ()) -> None:
        """Write one more wheel."""
        self.made[f"{name}=={version}"] = wheel(self.folder, name, version, files, requires=requires)

    def pins(self, build: str) -> list[str]:
        """Return what the lock of a build pins, as `name==version`."""
        name, version, libraries = BUILDS[build]
        return [*BASE, *(f"{library}=={NVIDIA[library][0]}" for library in libraries), f"{name}=={version}"]


def make_wheels(root: Path, *, parts: int = 0) -> Wheels:
    """Write the wheels and the locks below `root`; `parts` more files in each build make linking take longer."""
    wheels = Wheels(root)
    for name, version in (
        ("onnxruntime", "1.31.1"),
        ("onnxruntime", "1.26.0"),
        ("onnxruntime-gpu", "1.31.1"),
        ("onnxruntime-gpu", "1.26.0"),
    ):
        files = runtime_files(name, version)
        files |= {f"onnxruntime/more/part{number}.py": f"# {name} {version}\n" for number in range(parts)}
        files[f"onnxruntime/capi/libonnxruntime.so.{version}"] = f"{name} {version}\n" * 500
        if name == "onnxruntime-gpu":
            files["onnxruntime/capi/libonnxruntime_providers_cuda.so"] = f"cuda {version}\n" * 500
        wheels.add(name, version, files, RUNTIME_REQUIRES)
    for name, (version, requires) in NVIDIA.items():
        wheels.add(name, version, library_files(name, version), requires)
    for pin in (*BASE, "numpy==1.26.4", "numpy==1.20.0"):
        name, _, version = pin.partition("==")
        wheels.add(
            name, version, {f"{name}/__init__.py": f"__version__ = {version!r}\n", f"{name}/data.bin": name * 99}
        )
    wheels.add("userlib", "1.0", {"userlib/__init__.py": "x = 1\n", "nvidia_user/__init__.py": ""}, ["numpy"])
    wheels.add("asks-for-runtime", "2.0", {"asks/__init__.py": ""}, ["onnxruntime>=1.17", "protobuf"])
    wheels.add(
        "asks-for-cuda12", "2.0", {"torchlike/__init__.py": ""}, ["nvidia-cublas-cu12==12.8.4.1", "nvidia-nccl-cu12"]
    )
    wheels.add("asks-for-cudnn12", "2.0", {"torchlike/__init__.py": ""}, ["nvidia-cudnn-cu12"])
    for build in BUILDS:
        lock(wheels.lock(build), {pin: wheels.made[pin] for pin in wheels.pins(build)})
    return wheels


def library_files(name: str, version: str) -> dict[str, str]:
    """Return what one of NVIDIA's wheels installs: CUDA 13 in one folder, CUDA 12 and cuDNN in one each."""
    part = name.removeprefix("nvidia-").removesuffix("-cu12").removesuffix("-cu13").replace("-", "_")
    if name.endswith("-cu12"):
        return {
            "nvidia/__init__.py": "",
            f"nvidia/{part}/__init__.py": "",
            f"nvidia/{part}/lib/lib{part}.so": f"{name} {version}\n" * 300,
        }
    folder = part if name.endswith("-cu13") else "cu13"
    return {f"nvidia/{folder}/lib/lib{part}.so": f"{name} {version}\n" * 300}


@dataclass
class Foreign:
    """One environment, a home of Imprint's beside it, and the two steps of changing it."""

    root: Path
    wheels: Wheels
    python: str = sys.executable
    events: list[Event] = field(default_factory=list)

    @property
    def prefix(self) -> Path:
        """The environment."""
        return self.root / "env mit ü"

    @property
    def home(self) -> Home:
        """Imprint's home."""
        return Home(self.root / "home")

    @property
    def packages(self) -> Path:
        """The environment's folder of packages."""
        return next(self.prefix.glob("lib/python3*/site-packages"))

    @property
    def uv(self) -> Uv:
        """The installer as Imprint runs it, offline."""
        self.home.root.mkdir(parents=True, exist_ok=True)
        return find_uv(self.home, dict(os.environ), Sources(offline=True, find_links=self.wheels.folder))

    def create(self, *pins: str, pip: bool = False) -> None:
        """Make the environment with the owner's packages and `pins`; with `pip` by venv, else by uv."""
        if pip:
            subprocess.run([self.python, "-m", "venv", self.prefix], check=True)
        else:
            self.own_uv("venv", "--quiet", "--python", self.python, str(self.prefix))
        self.install(*OWNERS, *pins)

    def install(self, *pins: str) -> None:
        """Install as the owner would, without hashes, from the same folder but with another cache."""
        if pins:
            self.own_uv("pip", "install", "--quiet", "--no-deps", "--python", str(self.prefix), *pins)

    def uninstall(self, *names: str) -> None:
        """Uninstall as the owner would."""
        self.own_uv("pip", "uninstall", "--quiet", "--python", str(self.prefix), *names)

    def own_uv(self, *arguments: str) -> None:
        """Run uv as the owner would."""
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.root), "UV_CACHE_DIR": str(self.root / "own cache")}
        offline = ["--offline", "--find-links", str(self.wheels.folder)] if arguments[0] != "venv" else ["--offline"]
        if arguments[1] == "uninstall":
            offline = []
        argv = [str(self.uv.executable), "--no-config", *arguments[:2], *offline, *arguments[2:]]
        subprocess.run(argv, check=True, env=environ, capture_output=True)

    def prepare(self, build: str, *, repair: bool = False) -> InplacePlan:
        """Return what would be done for a build."""
        return inplace.prepare(self.prefix, plan_for(build), self.home, locks=[self.wheels.lock(build)], repair=repair)

    def setup(self, build: str, *, repair: bool = False) -> InplaceOutcome:
        """Change the environment to a build."""
        self.home.root.mkdir(parents=True, exist_ok=True)
        return inplace.apply(self.prepare(build, repair=repair), self.uv, self.events.append)

    def tree(self) -> dict[str, str]:
        """Return the digest of every file in the folder of packages, compiled ones aside."""
        return tree_of(self.packages)

    def owned(self, *names: str) -> dict[str, str]:
        """Return the part of the tree that these distributions of the owner's record."""
        tree = self.tree()
        found: dict[str, str] = {}
        for name in names:
            stem = name.partition("==")[0].replace("-", "_")
            info = next(self.packages.glob(f"{stem}-*.dist-info"))
            paths = [line.split(",")[0] for line in (info / "RECORD").read_text().splitlines()]
            found |= {path: tree[path] for path in paths if path in tree}
        return found


def plan_for(build: str) -> Plan:
    """Return a plan for a build, as the planner would."""
    name, version, _ = BUILDS[build]
    return Plan(build, f"{build}.txt", version, None, "device-cpu", f"{name} was asked for")


def reference(foreign: Foreign, build: str, *pins: str) -> dict[str, str]:
    """Return the tree of a new environment with the owner's packages, `pins` and exactly one build."""
    key = (foreign.python, build, *pins)
    if key not in foreign.wheels.references:
        other = Foreign(foreign.wheels.root / "reference", foreign.wheels, foreign.python)
        shutil.rmtree(other.prefix, ignore_errors=True)
        other.create(*pins)
        lock_of_build = str(foreign.wheels.lock(build))
        other.own_uv("pip", "install", "--quiet", "--no-deps", "--python", str(other.prefix), "-r", lock_of_build)
        foreign.wheels.references[key] = other.tree()
    return foreign.wheels.references[key]


def assert_exactly(foreign: Foreign, build: str, *also: str) -> None:
    """Compare with a new environment that holds the owner's packages, `also` and the build, file by file."""
    tree, expected = foreign.tree(), reference(foreign, build, *BASE, *also)
    differing = {path for path in {*tree, *expected} if tree.get(path) != expected.get(path)}
    assert not differing
    assert not foreign.prepare(build).pending


def hollow_with_orphans(foreign: Foreign) -> None:
    """Leave a build whose files went with another's, and files of that other one."""
    foreign.install("onnxruntime-gpu==1.26.0")
    foreign.install("onnxruntime==1.31.1")
    foreign.uninstall("onnxruntime-gpu")


def tree_of(packages: Path) -> dict[str, str]:
    """Return the digest of every file below a folder of packages, compiled ones and uv's own files aside."""
    found = {}
    for folder, _, names in os.walk(packages):
        for name in names:
            path = Path(folder) / name
            if path.suffix != ".pyc" and not name.startswith("_virtualenv"):
                found[path.relative_to(packages).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
