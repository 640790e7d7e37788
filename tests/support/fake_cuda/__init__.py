"""Builds a scripted NVIDIA driver (libcuda and libnvidia-ml compiled from C) that the real probe loads with ctypes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from imprint.probing.host import TEXT_LIMIT
from imprint.probing.this_machine import RealHost

SOURCES = Path(__file__).parent

PLAIN_UUID = "00112233445566778899aabbccddeeff"


class WithoutHardware(RealHost):
    """This machine, as if it had no NVIDIA hardware and no driver of its own: the same answers everywhere."""

    HIDDEN = ("/sys/bus/pci", "/sys/module/nvidia", "/proc/driver", "/dev/nvidia", "/dev/nvgpu", "/dev/nvhost")

    def read_text(self, path: str, limit: int = TEXT_LIMIT) -> str | None:
        """Read what is not hidden."""
        return None if path.startswith(self.HIDDEN) else super().read_text(path, limit)

    def list_dir(self, path: str) -> tuple[str, ...] | None:
        """List what is not hidden."""
        return None if path.startswith(self.HIDDEN) else super().list_dir(path)

    def exists(self, path: str) -> bool:
        """Deny what is hidden."""
        return not path.startswith(self.HIDDEN) and super().exists(path)


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

    def host(self, environ: Mapping[str, str] | None = None) -> RealHost:
        """Return this machine with this driver and no NVIDIA hardware of its own; `environ` is added."""
        return WithoutHardware({**self.environ(), **(environ or {})})


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
