"""`read-wheels`: derives the fields of `data/builds.json` that wheels can tell, from the wheels themselves.

Each lock is installed, by hash, into a scratch folder for each platform it is claimed for, read and deleted again:
nothing of it is ever run.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from imprint_dev import binaries, coverage, table, wheels
from imprint_dev.claims import Lock, TargetPlatform, parse_claims
from imprint_dev.layout import BUILDS, LOCKS
from imprint_dev.uv import UvError, find_uv, run_uv

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no public name

_PREFERRED_PYTHON = "3.12"
_CAPI = Path("onnxruntime", "capi")
_PROVIDERS = ("libonnxruntime_providers_cuda.so", "onnxruntime_providers_cuda.dll")


class ReadingError(RuntimeError):
    """The wheels of a lock do not hold what a build has to have; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A reading, what was judged too little to count, and the CUDA libraries the lock should supply but does not."""

    reading: table.Reading
    too_little: Mapping[tuple[str, str], coverage.Share]
    not_supplied: tuple[str, ...]
    unreadable: bool = False
    """NVIDIA's tool was asked and could not read the library."""


def register(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("read-wheels", help="derive data/builds.json from the wheels (gigabytes)")
    parser.add_argument("builds", nargs="*", metavar="BUILD", help="builds to read, by default all")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the table differs")
    parser.add_argument("--cross-check", action="store_true", help="compare with cuobjdump where it can read")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    document = json.loads(BUILDS.read_text(encoding="utf-8"))
    names = [build["name"] for build in document["builds"]]
    if unknown := sorted(set(arguments.builds) - set(names)):
        sys.stderr.write(f"error: no such build: {', '.join(unknown)}; there are {', '.join(names)}\n")
        return 2
    wanted = [place for place in table.places(document) if place.build["name"] in (arguments.builds or names)]
    failures = 0
    try:
        uv = find_uv()
        for _system, group in by_system(wanted):
            # Builds of one platform share libraries. What was downloaded for it goes before the next one's comes.
            with tempfile.TemporaryDirectory(prefix="imprint-wheels-") as folder:
                for place in group:
                    lines, wrong = _one(uv, place, Path(folder), arguments)
                    failures += wrong
                    sys.stdout.write("".join(line + "\n" for line in lines))
                    sys.stdout.flush()
    except (UvError, ReadingError, wheels.WheelError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    if not arguments.check:
        BUILDS.write_text(table.render(document), encoding="utf-8")
    return 1 if failures else 0


def by_system(places: Iterable[table.Place]) -> list[tuple[tuple[str, str], list[table.Place]]]:
    """Return the places grouped by operating system and architecture."""
    groups: dict[tuple[str, str], list[table.Place]] = {}
    for place in places:
        groups.setdefault(place.system, []).append(place)
    return list(groups.items())


def _one(uv: str, place: table.Place, folder: Path, arguments: argparse.Namespace) -> tuple[list[str], int]:
    """Read one place and put the reading into its document; return what to say and the number of failures."""
    examined = examine(uv, place, folder, cross_check=arguments.cross_check)
    lines = [
        f"{place}: {kind} {capability} does not count: {share.containers} containers, {share.size} bytes"
        for (kind, capability), share in sorted(examined.too_little.items())
    ]
    lines += [f"{place}: links {name}, which its lock does not supply" for name in examined.not_supplied]
    lines += [f"{place}: cuobjdump cannot read this library"] if examined.unreadable else []
    different = table.differences(place, examined.reading)
    table.fill(place, examined.reading, (LOCKS / f"{place.lock}.txt").read_text(encoding="utf-8"))
    failures = len(examined.not_supplied) + (len(different) if arguments.check else 0)
    return [*lines, *(different or [f"{place}: as in the table"])], failures


def examine(uv: str, place: table.Place, folder: Path, *, cross_check: bool = False) -> Examined:
    """Install a build's lock for one platform under `folder`, where uv's cache is kept too, and read it.

    Errors: ReadingError, UvError, WheelError, BinaryError, FatbinError, CoverageError.
    """
    lock = parse_claims((LOCKS / "platforms.toml").read_text(encoding="utf-8"))[place.lock]
    spot = spot_of(lock, *place.system)
    chosen = wheels.choose(wheels.resolve(uv, lock, LOCKS, spot), spot)
    runtime = next(name for name in chosen if name.startswith("onnxruntime"))
    served = [wheel for wheel in wheels.resolve(uv, lock, LOCKS, None) if wheel.distribution == runtime]
    pythons = [one.python for one in lock.spots if one.platform == spot.platform]
    floor = table.later(wheels.floor_on(chosen[runtime]), table.FLOORS.get(place.system))
    # On the cache's file system, so that installing is hard-linking.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        target = Path(scratch, "target")
        _install(uv, lock, spot, target)
        info = build_info((target / _CAPI / "build_and_package_info.py").read_text(encoding="utf-8"))
        provider = next((path for name in _PROVIDERS if (path := target / _CAPI / name).exists()), None)
        library = binaries.read_library(provider) if provider else binaries.Library((), (), ())
        covered = coverage.judge(library.code)
        unreadable = False
        if cross_check and provider and provider.suffix == ".so":
            unreadable = not compare_with_cuobjdump(uv, provider, library, folder)
        links = coverage.cuda_libraries(library.needed)
        supplied = {path.name for path in target.rglob("*") if path.is_file()}
        installed = recorded_bytes(target)
    reading = table.Reading(
        version=info["__version__"],
        toolkit=info.get("cuda_version"),
        libc=floor if spot.platform.startswith("linux") else None,
        os_version=floor if spot.platform.startswith("macos") else None,
        abis=list(wheels.abis_on(served, spot, pythons)),
        native=list(covered.native),
        ptx=[{"capability": capability, "toolkit": toolkit} for capability, toolkit in covered.ptx],
        links=list(links),
        download_bytes=sum(wheel.size for wheel in chosen.values()),
        installed_bytes=installed,
    )
    missing = set(links) - supplied - coverage.DRIVER_LIBRARIES
    return Examined(reading, covered.too_little, tuple(sorted(missing)), unreadable)


def spot_of(lock: Lock, system: str, arch: str) -> TargetPlatform:
    """Return the machine that stands for a platform: of those claimed, with Python 3.12 or else the oldest."""
    spots = [spot for spot in lock.spots if spot.platform.split("-")[:2] == [system, arch]]
    if not spots:
        raise ReadingError(f"{lock.name} claims nothing on {system} {arch}")
    return next((spot for spot in spots if spot.python == _PREFERRED_PYTHON), spots[0])


def _install(uv: str, lock: Lock, spot: TargetPlatform, target: Path) -> None:
    arguments = ["pip", "install", "--quiet", "--only-binary", ":all:", "--require-hashes", "--no-deps"]
    arguments += ["--python-platform", spot.triple, "--python-version", spot.python, "--target", str(target)]
    extra = {"UV_CACHE_DIR": str(target.parent.with_name("cache"))}
    extra |= {"MACOSX_DEPLOYMENT_TARGET": spot.macos} if spot.macos else {}
    done = run_uv(uv, [*arguments, "--requirements", str(LOCKS / f"{lock.name}.txt")], cwd=target.parent, extra=extra)
    if done.returncode != 0:
        raise UvError(f"{lock.name}.txt does not install for {spot}:\n{done.stderr.strip()}")


def build_info(text: str) -> dict[str, str]:
    """Return the names that `build_and_package_info.py` assigns, without running it."""
    return {
        node.targets[0].id: node.value.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def recorded_bytes(target: Path) -> int:
    """Return the sum of the sizes in all RECORD files, without the start scripts that the installer writes."""
    total = 0
    for record in target.glob("*.dist-info/RECORD"):
        with record.open(encoding="utf-8", newline="") as file:
            for path, _digest, size in csv.reader(file):
                if size and not path.startswith(("bin/", "Scripts/", "..")):
                    total += int(size)
    return total


def compare_with_cuobjdump(uv: str, provider: Path, library: binaries.Library, folder: Path) -> bool:
    """Compare with what NVIDIA's tool lists of a Linux library; False when it cannot read the library.

    It calls some libraries of older toolkits an invalid ELF file and stops there. Errors: ReadingError when the two
    differ, UvError when the tool is not to be had.
    """
    tool = [str(_cuobjdump(uv, folder)), "--list-elf", "--list-ptx", str(provider)]
    done = subprocess.run(tool, check=False, capture_output=True, text=True)
    if done.returncode != 0 and "Invalid ELF" in done.stderr:
        return False
    for word, kind in (("ELF", "native"), ("PTX", "ptx")):
        listed = "".join(line for line in done.stdout.splitlines() if line.startswith(f"{word} file"))
        theirs = Counter(f"{name[:-1]}.{name[-1]}{suffix}" for name, suffix in coverage.TARGET.findall(listed))
        ours = Counter(code.capability for code in library.code if code.kind == kind)
        if theirs != ours:
            raise ReadingError(f"{provider.name}: {kind} code by cuobjdump is {dict(theirs)}, by us {dict(ours)}")
    return True


def _cuobjdump(uv: str, folder: Path) -> Path:
    target = folder / "cuobjdump"
    arguments = ["pip", "install", "--quiet", "--only-binary", ":all:", "--require-hashes", "--target", str(target)]
    arguments += ["--requirements", str(LOCKS / "cuobjdump.txt")]
    done = run_uv(uv, arguments, cwd=folder, extra={"UV_CACHE_DIR": str(folder / "cache")})
    found = next(target.rglob("bin/cuobjdump"), None) if done.returncode == 0 else None
    if found is None:
        raise UvError(f"cuobjdump is not to be had here:\n{done.stderr.strip()}")
    found.chmod(0o755)
    return found
