"""Builds a scripted NVIDIA driver (libcuda and libnvidia-ml compiled from C) that the real probe loads with ctypes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent

PLAIN_UUID = "00112233445566778899aabbccddeeff"


@dataclass(frozen=True, slots=True)
class FakeDriver:
    """A folder of driver libraries and the script they act on."""

    folder: Path
    script: Path

    def play(self, *lines: str) -> None:
        """Replace the script; see script.h for its lines."""
        self.script.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def environ(self, **others: str) -> Mapping[str, str]:
        """Return an environment in which the loader finds this driver first, without anything CUDA of ours."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NVIDIA_"))}
        return {**inherited, "LD_LIBRARY_PATH": str(self.folder), "FAKE_CUDA_SCRIPT": str(self.script), **others}


def device_line(
    name: str = "NVIDIA RTX A4000",
    capability: str = "8.6",
    *,
    memory: int = 16376 << 20,
    free: int | None = None,
    integrated: bool = False,
    pci: str = "0000:01:00.0",
    uuid: str = PLAIN_UUID,
    whole: str | None = None,
) -> str:
    """Return the script line of one device; `whole` is the UUID of the GPU that a MIG slice belongs to."""
    major, minor = capability.split(".")
    fields = (name, major, minor, memory, int(integrated), pci, uuid, whole or uuid, "" if free is None else free)
    return "device " + "|".join(str(field) for field in fields)


def compile_driver(folder: Path, *, nvml: bool = True, defines: tuple[str, ...] = ()) -> FakeDriver:
    """Compile the driver into a new folder; a C compiler must be there."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise RuntimeError("the probe's tests compile a scripted driver and need gcc")
    folder.mkdir(parents=True)
    for source, soname in (
        ("libcuda.c", "libcuda.so.1"),
        *((("libnvidia_ml.c", "libnvidia-ml.so.1"),) if nvml else ()),
    ):
        subprocess.run(
            [
                *(compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", f"-Wl,-soname,{soname}"),
                *(f"-D{define}" for define in defines),
                *("-o", str(folder / soname), str(SOURCES / source)),
            ],
            check=True,
        )
    return FakeDriver(folder, folder / "script")
