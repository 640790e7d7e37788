"""Makes a target without a network: an environment of unpacked wheels, with CUDA libraries from wherever they are.

Standard library only. Libraries are linked one by one, so that each can be taken away without touching its source.
"""

from __future__ import annotations

import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from imprint.runtime.check.libraries import supplier_of
from imprint.runtime.distributions.inventory import packages_folder
from imprint.runtime.target import interpreter_of


def make_target(prefix: Path, wheels: Iterable[Path]) -> Path:
    """Make an environment at `prefix` with these wheels and return its interpreter."""
    venv.create(prefix, symlinks=sys.platform != "win32", with_pip=False)
    packages = packages_folder(prefix)
    if packages is None:
        raise SystemExit(f"error: `{prefix}` has no folder of packages")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    return interpreter_of(prefix)


def link_libraries(prefix: Path, sources: Iterable[Path]) -> dict[str, Path]:
    """Link NVIDIA's libraries below each of `sources` (folders of packages) into the environment, where it lacks them.

    Return what was linked, by file name. Folders keep their names, which is where ONNX Runtime looks.
    """
    packages = packages_folder(prefix)
    linked: dict[str, Path] = {}
    for source in sources:
        for library in sorted(source.glob("nvidia/*/lib/*.so*")):
            place = Path(packages or prefix) / library.relative_to(source)
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(library)
                linked[library.name] = library
    return linked


def own_packages() -> tuple[Path, ...]:
    """Return the folders of packages of the interpreter that runs this: torch brings CUDA libraries there."""
    return tuple(dict.fromkeys(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")))


def libraries_by_wheel(prefix: Path, cuda: str) -> dict[str, tuple[Path, ...]]:
    """Return NVIDIA's libraries in the environment, by the name of the wheel that supplies each."""
    found: dict[str, list[Path]] = {}
    for path in sorted(Path(packages_folder(prefix) or prefix).glob("nvidia/*/lib/*.so*")):
        supplier = supplier_of(path.name, cuda)
        if supplier is not None and supplier.wheel is not None:
            found.setdefault(supplier.wheel, []).append(path)
    return {wheel: tuple(paths) for wheel, paths in found.items()}


class Without:
    """Takes files away for the time of a `with` block; nothing is written into any of them."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)

    def __enter__(self) -> None:
        for path in self._paths:
            path.rename(self._aside(path))

    def __exit__(self, *_: object) -> None:
        for path in self._paths:
            self._aside(path).rename(path)

    @staticmethod
    def _aside(path: Path) -> Path:
        return path.with_name(f"aside-{path.name.replace('.so', '_so')}")


def wheels_in(folder: Path) -> Iterator[Path]:
    """Yield the wheels of a folder in order of name."""
    yield from sorted(folder.glob("*.whl"))
