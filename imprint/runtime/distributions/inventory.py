"""Sees what an environment holds by reading its dist-info folders: distributions, what is broken, which ONNX Runtime.

Nothing is imported or started, and nothing is changed. Metadata says what was installed, not what loads; that is
the check's business.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from imprint import access
from imprint.runtime.distributions.records import hash_is, is_name, normalize, read_rows, read_text

__all__ = ["Distribution", "Inventory", "Problem", "RuntimePackage", "inspect", "is_build", "is_runtime", "normalize"]

_ASSIGNMENT = re.compile(r"""^(\w+)\s*=\s*(['"])([^'"\n]*)\2\s*$""", re.MULTILINE)
_MARKS = {
    "providers_cuda": "onnxruntime-gpu",
    "providers_openvino": "onnxruntime-openvino",
    "DirectML": "onnxruntime-directml",
}
"""Files that only one build of ONNX Runtime brings, for builds that do not name themselves."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an installed distribution.

    `kind`: no-metadata, no-record, odd-metadata, odd-record (no regular file), no-installer, missing, size or hash
    (`deep` only). `path` is relative to the folder of packages.
    """

    distribution: str
    kind: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Distribution:
    """One dist-info folder: normalized name, version (None when unreadable), the sum of its recorded sizes (bytes).

    `is_build` tells whether it is a build of ONNX Runtime, which owns the folder `onnxruntime`.
    """

    name: str
    version: str | None
    folder: Path
    size: int
    problems: tuple[Problem, ...] = ()
    is_build: bool = False


@dataclass(frozen=True, slots=True)
class RuntimePackage:
    """What the files of the `onnxruntime` package say they are, whatever the metadata says.

    `package` is like "onnxruntime-gpu"; `cuda` is None in builds without CUDA. All None: the folder is hollow.
    """

    package: str | None = None
    version: str | None = None
    cuda: str | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """What an environment holds. `packages` is its folder of packages, None when it has none."""

    prefix: Path
    packages: Path | None
    distributions: tuple[Distribution, ...] = ()
    runtime: RuntimePackage | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem of every distribution."""
        return tuple(problem for distribution in self.distributions for problem in distribution.problems)

    @property
    def runtime_distributions(self) -> tuple[Distribution, ...]:
        """The distributions that own the folder `onnxruntime`: more than one means that one hides the other."""
        return tuple(found for found in self.distributions if found.is_build)

    @property
    def versions(self) -> dict[str, str | None]:
        """Versions by normalized name."""
        return {found.name: found.version for found in self.distributions}


def is_runtime(name: str) -> bool:
    """Whether a normalized name is one of a build of ONNX Runtime that owns the folder `onnxruntime`."""
    if name in {"onnxruntime-extensions", "onnxruntime-genai"} or name.startswith("onnxruntime-ep-"):
        return False
    return name == "onnxruntime" or name.startswith("onnxruntime-")


OWN_NAMES = frozenset({"onnxruntime", "onnxruntime-gpu"})
"""The distributions that our locks name. Whether another one is a build, its files have to show."""


def is_build(name: str, recorded: Collection[str]) -> bool:
    """Whether a distribution is a build of ONNX Runtime: named like one, and owner of modules below `onnxruntime/`.

    Plug-ins, stubs and other people's packages are named like builds too and live beside one, or are no package at
    all (installed from a checkout). Only a distribution that our own locks name is one without a whole RECORD to show.
    """
    if not is_runtime(name):
        return False
    # Spelled as anybody may: `./onnxruntime/x`, `onnxruntime//x`.
    paths = [path if path.startswith("onnxruntime/") else os.path.normpath(path) for path in recorded]
    if any(path == "onnxruntime/__init__.py" or path.startswith("onnxruntime/capi/") for path in paths):
        return True
    if name not in OWN_NAMES:
        return False
    return any(path.startswith("onnxruntime/") for path in paths) or not any(
        path.endswith((".py", ".pth")) for path in paths
    )


def packages_folder(prefix: Path) -> Path | None:
    """Return the environment's site-packages, None when there is none."""
    candidates = [*sorted(prefix.glob("lib/python3*/site-packages")), prefix / "Lib" / "site-packages"]
    found = [path for path in candidates if access.is_folder(path)]
    if len(found) > 1:
        # Made again with another Python, with the folder of the old one left behind.
        own = Path(os.path.realpath(prefix / "bin" / "python")).name
        found.sort(key=lambda path: path.parent.name != own)
    return next(iter(found), None)


def inspect(prefix: Path, *, deep: bool = False) -> Inventory:
    """Return what the environment at `prefix` holds; with `deep` every recorded hash is compared as well.

    Unreadable parts are problems, never errors.
    """
    packages = packages_folder(prefix)
    if packages is None:
        return Inventory(prefix, None)
    found = tuple(_distribution(folder, packages, deep) for folder in _info_folders(packages))
    return Inventory(prefix, packages, found, runtime_package(packages))


def runtime_package(packages: Path) -> RuntimePackage | None:
    """Return what the folder `onnxruntime` in `packages` says it is, None when there is no such folder."""
    if not access.is_folder(packages / "onnxruntime"):
        return None
    capi = packages / "onnxruntime" / "capi"
    values = _assigned(capi / "build_and_package_info.py")
    if values is None:
        return _unnamed_package(packages / "onnxruntime")
    return RuntimePackage(values.get("package_name"), values.get("__version__"), values.get("cuda_version"))


def _assigned(path: Path) -> dict[str, str] | None:
    """Return the strings that a module assigns, None when it cannot be read."""
    text = read_text(path)
    if text is None:
        return None
    return {name: value for name, _, value in _ASSIGNMENT.findall(text)}


def _unnamed_package(folder: Path) -> RuntimePackage:
    """Return what a build before 1.21 is, which does not name itself: its libraries do, and its version stands apart.

    Without its modules the folder is hollow.
    """
    try:
        names = sorted(path.name for path in (folder / "capi").iterdir())
    except OSError:
        return RuntimePackage()
    if not any(name.startswith("onnxruntime_pybind11_state") for name in names):
        return RuntimePackage()
    package = next((of for mark, of in _MARKS.items() if any(mark in name for name in names)), "onnxruntime")
    return RuntimePackage(package, (_assigned(folder / "__init__.py") or {}).get("__version__"))


def tree_files(folder: Path) -> Iterator[os.stat_result]:
    """Yield the status of every regular file below `folder`; what vanishes or cannot be read meanwhile is left out."""
    pending = [str(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    try:
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
                        elif entry.is_file(follow_symlinks=False):
                            yield entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
        except OSError:
            continue


def _is_info(name: str) -> bool:
    # What begins so pip renamed while it replaced a package, and was killed before it removed it.
    return name.lower().endswith(".dist-info") and not name.startswith("~")


def _info_folders(packages: Path) -> list[Path]:
    try:
        with os.scandir(packages) as entries:
            return sorted(Path(entry.path) for entry in entries if _is_info(entry.name) and entry.is_dir())
    except OSError:
        return []


def _distribution(folder: Path, packages: Path, deep: bool) -> Distribution:
    name, version = _name_and_version(folder)
    problems: list[Problem] = []
    if version is None:
        problems.append(Problem(name, _kind_of("METADATA", folder)))
    # uv and pip write INSTALLER last: without it the installation was cut short.
    if not access.is_file(folder / "INSTALLER"):
        problems.append(Problem(name, "no-installer"))
    size = 0
    rows = read_rows(folder) or ()
    if not rows:
        problems.append(Problem(name, _kind_of("RECORD", folder)))
    for row in rows:
        problem, recorded = _compare(name, row, str(packages), deep)
        size += recorded
        if problem is not None:
            problems.append(problem)
    paths = [row[0] for row in rows]
    return Distribution(name, version, folder, size, tuple(problems), is_build=is_build(name, paths))


def _kind_of(file: str, folder: Path) -> str:
    """Return what is wrong with a file of metadata that cannot be used."""
    odd = os.path.exists(folder / file) and not access.is_file(folder / file)  # noqa: PTH110 - pathlib's own raises
    return f"{'odd' if odd else 'no'}-{file.lower()}"


def _name_and_version(folder: Path) -> tuple[str, str | None]:
    headers = _headers(read_text(folder / "METADATA") or "")
    stem = normalize(folder.name.removesuffix(".dist-info").partition("-")[0])
    name = headers.get("name", "")
    # Installers go by the folder's name; metadata that contradicts it is damaged, and neither an order nor a proof.
    fits = is_name(name) and normalize(name) == stem
    return stem, headers.get("version") if fits else None


def _headers(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon or len(found) == 2:
            break
        if key.lower() in {"name", "version"}:
            found[key.lower()] = value.strip()
    return found


def _compare(name: str, row: Sequence[str], packages: str, deep: bool) -> tuple[Problem | None, int]:
    if row[0].endswith(".pyc"):
        return None, 0
    path = row[0]
    digest = row[1] if len(row) > 1 else ""
    recorded = int(row[2]) if len(row) > 2 and row[2].isdecimal() else None
    full = os.path.join(packages, path)  # noqa: PTH118 - 1,500 of these have to be fast
    try:
        status = os.stat(full)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return Problem(name, "missing", path), recorded or 0
    if not stat.S_ISREG(status.st_mode):
        return Problem(name, "missing", path), recorded or 0
    if recorded is not None and status.st_size != recorded:
        return Problem(name, "size", path), recorded
    if deep and digest and not hash_is(Path(full), digest):
        return Problem(name, "hash", path), recorded or 0
    return None, recorded or 0
