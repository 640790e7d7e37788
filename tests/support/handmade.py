"""Environments written by hand, file by file, so that they can hold what no installer would make.

They have the layout of `python -m venv`, a real interpreter, and distributions whose metadata is what the test says.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from imprint.context import Context
from imprint.operations.prune import prune
from imprint.operations.setup import Seams, SetupOptions, setup
from imprint.paths import Home
from imprint.planning.model import Device, Machine
from imprint.results import Result
from imprint.runtime.check.run import CPU, CUDA, CheckResult
from imprint.runtime.events import Event
from support.foreign import BUILDS, RUNTIME_REQUIRES, Wheels, make_wheels
from support.place import MACHINE, no_model
from support.sandbox import Entry, snapshot
from support.twins import loaded, lock

DRIVERS = {"cuda13": ("580.95.05", "13.0"), "cuda12": ("550.54.15", "12.4")}
"""The driver with which each build for GPUs is planned."""

SERIES = f"python{sys.version_info[0]}.{sys.version_info[1]}"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a RECORD as it is written; None for the hash and size of what the path holds."""

    path: str
    digest: str | None = None
    size: str | None = None


class Handmade:
    """One environment in a scratch folder, with canaries round it and a home of Imprint's beside it.

    `scratch/above/env mit ü` is the environment. Everything else below `scratch` but `home`, `tmp` and what a test
    names is the owner's and stands for the rest of their disk.
    """

    def __init__(self, scratch: Path, wheels: Wheels) -> None:
        self.scratch = scratch
        self.wheels = wheels
        self.prefix = scratch / "above" / "env mit ü"
        self.packages = self.prefix / "lib" / SERIES / "site-packages"
        self.home = Home(scratch / "home")
        self.owner = scratch / "owner's home"
        self.events: list[Event] = []
        self.asked: list[str] = []
        self.check: Callable[[Path, Device | None, Mapping[str, str]], CheckResult] = passing

    def make(self) -> None:
        """Write the empty environment and the canaries."""
        plant(self.scratch)
        (self.prefix / "bin").mkdir(parents=True)
        base = Path(os.path.realpath(sys.executable))
        (self.prefix / "bin" / "python").symlink_to(base)
        (self.prefix / "bin" / "python3").symlink_to("python")
        (self.prefix / "bin" / "activate").write_text("# activate\n")
        (self.prefix / "pyvenv.cfg").write_text(
            f"home = {base.parent}\ninclude-system-site-packages = false\nversion = {sys.version.split()[0]}\n"
        )
        self.packages.mkdir(parents=True)
        (self.prefix / "lib64").symlink_to("lib")
        (self.prefix / "share" / "empty").mkdir(parents=True)
        (self.scratch / "tmp").mkdir(exist_ok=True)

    def install(self, *pins: str) -> None:
        """Install wheels as pip would."""
        for pin in pins:
            self.write(pin, wheel_files(self.wheels.made[pin]), complete=True)

    def write(
        self,
        pin: str,
        files: Mapping[str, bytes],
        rows: Iterable[Row | str] = (),
        *,
        requires: Iterable[str] = (),
        complete: bool = False,
    ) -> Path:
        """Write a distribution's files, and its dist-info with `rows` added to its RECORD; return the dist-info.

        With `complete` the files hold METADATA and WHEEL already.
        """
        name, _, version = pin.partition("==")
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        content = {path: text for path, text in files.items() if not path.endswith("/RECORD")}
        if not complete:
            more = "".join(f"Requires-Dist: {line}\n" for line in requires)
            content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}".encode()
        content[f"{info}/INSTALLER"] = b"pip\n"
        for path, text in content.items():
            full = self.packages / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.unlink(missing_ok=True)
            full.write_bytes(text)
        lines = [f"{path},sha256={_urlsafe(text)},{len(text)}" for path, text in content.items()]
        lines += [row if isinstance(row, str) else f"{row.path},{row.digest or ''},{row.size or ''}" for row in rows]
        (self.packages / info / "RECORD").write_text("\n".join([*lines, f"{info}/RECORD,,"]) + "\n", "utf-8")
        return self.packages / info

    def own(self, name: str, files: Mapping[str, str] | None = None, rows: Iterable[Row | str] = ()) -> Path:
        """Write a distribution of the owner's with one module unless `files` says more; return its dist-info."""
        given = files if files is not None else {f"{name}/__init__.py": f"owned = {name!r}\n"}
        return self.write(f"{name}==1.0", {path: text.encode() for path, text in given.items()}, rows)

    def add_rows(self, stem: str, *rows: str | bytes) -> None:
        """Append rows to the RECORD of the distribution whose dist-info begins with `stem`."""
        self.add_rows_to(self.info(stem).name, *rows)

    def add_rows_to(self, info: str, *rows: str | bytes) -> None:
        """Append rows to the RECORD of a dist-info."""
        with (self.packages / info / "RECORD").open("ab") as file:
            file.writelines((row.encode() if isinstance(row, str) else row) + b"\n" for row in rows)

    def info(self, stem: str) -> Path:
        """Return the dist-info that begins with `stem`."""
        return next(iter(sorted(self.packages.glob(f"{stem}-*.dist-info"))))

    def context(self, device: str = "cpu") -> Context:
        """Return the surroundings of one run: the owner's home, and nothing of installers."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_", "XDG"))
        }
        kept |= {"HOME": str(self.owner), "TMPDIR": str(self.scratch / "tmp")}
        return Context(self.home, kept, {"model.device": device})

    def seams(self, build: str = "cpu") -> Seams:
        """Return the world in which `build` is planned."""
        return Seams(
            machine=machine_for(build),
            check=self.check,
            lock_path=lambda name: self.wheels.lock(name.removesuffix(".txt")),
            install_model=no_model,
        )

    def setup(self, build: str = "cpu", **options: Any) -> Result[Any]:  # noqa: ANN401 - fields of SetupOptions
        """Run `setup --venv` for a build, offline from the folder of wheels."""
        defaults: dict[str, Any] = {"venv": self.prefix, "offline": True, "find_links": self.wheels.folder}
        asked = SetupOptions(**(defaults | {"wait_seconds": 0} | options))
        context = self.context("cpu" if build == "cpu" else "gpu")
        return setup(context, asked, self.events.append, seams=self.seams(build))

    def prune(self) -> Result[Any]:
        """Run `prune --venv`."""
        return prune(self.context(), self.prefix, wait_seconds=0)

    def loads(self) -> str:
        """Return what the environment really imports, as one line; the error's last line when it does not."""
        return loaded(self.prefix / "bin" / "python")

    def canaries(self) -> dict[str, Entry]:
        """Return everything below the scratch folder that is neither the environment nor Imprint's, nor compiled."""
        prefix = self.prefix.relative_to(self.scratch).as_posix()
        without = {prefix, "home", "tmp"}
        return snapshot(self.scratch, without=lambda path: path in without or path.endswith("__pycache__"))

    def environment(self) -> dict[str, Entry]:
        """Return everything in the environment but what Python compiled."""
        return snapshot(self.prefix, without=lambda path: path.endswith("__pycache__"))


def expected(build: str) -> str:
    """Return what `Handmade.loads` says of a build."""
    name, version, _ = BUILDS[build]
    return f"{name} {version} {name}"


def machine_for(build: str) -> Machine:
    """Return a machine for which `build` is planned when a GPU is asked for."""
    if build == "cpu":
        return MACHINE
    driver, cuda = DRIVERS[build]
    return replace(MACHINE, nvidia=replace(MACHINE.nvidia, driver=driver, kernel_driver=driver, cuda=cuda))


def passing(_python: Path, device: Device | None, _environ: Mapping[str, str]) -> CheckResult:
    """Stand for a check that is passed."""
    return CheckResult("ok", None, CPU if device is None else CUDA, device)


def plant(scratch: Path) -> None:
    """Write canaries: what stands for the owner's disk above and beside an environment, empty folders too."""
    for folder in (
        "owner's home/.cache/uv/wheels",
        "owner's home/empty",
        "owner's home/src/onnxruntime/capi",
        "above/neighbour/lib/empty",
        "above/empty",
        "bin",
        "lib/empty",
        "shared/nvidia/cu13/lib",
        "shared/nvidia/cublas/lib",
        "shared/packaging",
        "x/y/sub",
        "x/empty",
    ):
        (scratch / folder).mkdir(parents=True)
    for file in (
        "file.txt",
        "bin/python",
        "lib/file.txt",
        "above/file.txt",
        "above/neighbour/pyvenv.cfg",
        "above/neighbour/lib/file.py",
        "owner's home/.bashrc",
        "owner's home/.cache/uv/wheels/one.whl",
        "owner's home/src/onnxruntime/__init__.py",
        "owner's home/src/onnxruntime/part3.py",
        "owner's home/src/onnxruntime/capi/library.so",
        "shared/nvidia/cu13/lib/libcublas.so",
        "shared/nvidia/cublas/lib/libcublas.so",
        "shared/packaging/__init__.py",
        "x/file.txt",
        "x/y/file.txt",
        "x/y/sub/f.txt",
    ):
        (scratch / file).write_text(f"the owner's {file}\n")
    (scratch / "x" / "link").symlink_to("y")
    os.link(scratch / "x" / "file.txt", scratch / "x" / "other name")


def small_wheels(root: Path) -> Wheels:
    """Write the wheels of `make_wheels` with a third of the files in each build, and the lock that all builds share."""
    made = make_wheels(root)
    for pin in [pin for pin in made.made if pin.startswith("onnxruntime")]:
        name, _, version = pin.partition("==")
        files = {path: content.decode() for path, content in wheel_files(made.made[pin]).items()}
        kept = {path: text for path, text in files.items() if path.startswith("onnxruntime/")}
        made.add(
            name,
            version,
            {path: text for path, text in kept.items() if not re.search(r"part\d\d", path)},
            RUNTIME_REQUIRES,
        )
    made.add("tokenizers", "0.23.3", {"tokenizers/__init__.py": ""}, ["numpy"])
    for build in BUILDS:
        lock(made.lock(build), {pin: made.made[pin] for pin in made.pins(build)})
    lock(made.lock("base"), {"tokenizers==0.23.3": made.made["tokenizers==0.23.3"]})
    wheel_files.cache_clear()
    return made


@cache
def wheel_files(path: Path) -> Mapping[str, bytes]:
    """Return what a wheel installs, by path."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _urlsafe(text: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")
