"""How the conditions of a remedy are told where nothing was looked at: on the pages, and by `doctor --explain`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

PLACES: Mapping[str, str] = {
    "posix": "on Linux and macOS",
    "linux": "on Linux",
    "windows": "on Windows",
    "powershell": "in PowerShell",
    "wsl": "in WSL",
    "debian": "on Debian and Ubuntu",
    "fedora": "on Fedora and related systems",
    "not-hint": "where no hint is printed",
    "as-planned": "where the planned build is installed",
    "not-as-planned": "where another build is installed",
    "kept": "while the GPU build stays installed",
    "loader-path": "where `LD_LIBRARY_PATH` names that folder",
    "unconcerned": "one that `imprint embed` does not need",
    "container": "in a container",
    "managed": "for Imprint's own runtime",
    "named": "in an environment of your own",
    "virtual": "in a virtual environment of your own",
    "conda": "in a conda environment",
    "externally-managed": "in the system's own Python",
    "not-changeable": "in conda, or a Python that is not a virtual environment",
    "gpu-planned": "where a GPU is planned",
    "cpu-planned": "where no GPU can be used",
    "asked-gpu": "where `model.device` is `auto` or `gpu`",
    "not-asked-gpu": "where `model.device` is `cpu`",
    "default-device": "where no device was chosen",
    "theirs": "for a package that you installed",
    "pending": "where setup would install another version",
    "foreign-home": "where the folder belongs to another user",
    "old-runtime": "before ONNX Runtime 1.21",
    "checked-cpu": "where the CPU build failed",
}
"""How a trait of a remedy is told; one without an entry needs no word where nothing was looked at."""


def place_of(traits: Iterable[str]) -> str:
    """Return where a remedy belongs, as the beginning of a sentence; empty where it belongs everywhere."""
    told = [PLACES[trait] for trait in traits if trait in PLACES]
    return f"{', '.join(told)}: " if told else ""
