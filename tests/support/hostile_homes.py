"""What is done to a home of Imprint's that no run of ours would do; each function does one such thing and says what."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from imprint.paths import Home

GENERATION = "20260101T000000Z-cpu-1.31.1-abcd"
IDS = (
    "..",
    ".",
    "",
    "/",
    "../../x",
    "x/y",
    GENERATION,
    "gone",
    "a" * 300,
    "\x00",
    "-rf",
    "20260101T000000Z-cpu-../../x",
    7,
)
NAMES = (
    *("--cache-dir=/x", "-r", "--all", "onnxruntime-y @ file:///z", "https://host.invalid/x", "", " ", "..", "../x"),
    *("a" * 3000, "numpy", "nvidia-cublas", "\x1b[2J", "onnxruntime\nnumpy", "nvidia_cublas", "*"),
)


@dataclass(slots=True)
class Disorder:
    """One home in the making, with the canaries beside it in `scratch`.

    `foreign` are the owner's paths in it. `lent` are folders in `scratch` that a folder of the home leads to: what is
    new in there is no harm.
    """

    scratch: Path
    home: Home
    chance: random.Random
    told: list[str] = field(default_factory=list)
    lent: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)

    @property
    def generations(self) -> list[Path]:
        """The folders in `runtimes/` that are there."""
        return [path for path in sorted(self.home.runtimes.glob("*")) if path.is_dir() and not path.is_symlink()]

    def outside(self, name: str = "") -> Path:
        """Return a canary to lead to."""
        return self.scratch / (
            name or self.chance.choice(["x/y", "x/file.txt", "above/empty", "shared/nvidia", "gone"])
        )

    def replace(self, path: Path, kind: str) -> None:
        """Put something else in the place of a file or folder."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        KINDS[kind](self, path)


KINDS: dict[str, Callable[[Disorder, Path], object]] = {
    "gone": lambda _disorder, _path: None,
    "a FIFO": lambda _disorder, path: os.mkfifo(path),
    "a folder": lambda _disorder, path: (path / "own").mkdir(parents=True),
    "a link to a file": lambda disorder, path: path.symlink_to(disorder.outside("x/file.txt")),
    "a link to a folder": lambda disorder, path: path.symlink_to(disorder.outside("x/y")),
    "a dangling link": lambda _disorder, path: path.symlink_to("nowhere"),
    "a link to itself": lambda _disorder, path: path.symlink_to(path.name),
    "a link to /dev/zero": lambda _disorder, path: path.symlink_to("/dev/zero"),
    "garbage": lambda _disorder, path: path.write_bytes(b"\xff{]"),
    "empty": lambda _disorder, path: path.touch(),
    "deep": lambda _disorder, path: path.write_text("[" * 100_000),
    "a list": lambda _disorder, path: path.write_text("[]"),
    "other things": lambda _disorder, path: path.write_text('{"schema": 1, "generation": 5, "id": [], "names": 3}'),
    "of a newer version": lambda _disorder, path: path.write_text('{"schema": 99}'),
}


def odd_file(disorder: Disorder) -> str:
    """Replace a state file by something else."""
    home = disorder.home
    manifests = [folder / "manifest.json" for folder in disorder.generations]
    files = [home.current, home.current, home.data / "deferred.json", home.verdicts, home.mutex, *manifests]
    path = disorder.chance.choice(
        [*files, home.mutex.with_name("setup.lock.holder"), home.config, home.data / ".x.tmp"]
    )
    kind = disorder.chance.choice(sorted(KINDS))
    disorder.replace(path, kind)
    return f"{path.relative_to(home.root)} is {kind}"


def odd_folder(disorder: Disorder) -> str:
    """Replace a folder of the home by a link that leads out of it, to where its content was moved or elsewhere."""
    home = disorder.home
    path = disorder.chance.choice([home.runtimes, home.data, home.tool, home.models, home.cache, home.logs])
    moved = disorder.scratch / "x" / f"moved {path.name}"
    if path.is_dir() and not path.is_symlink() and not moved.exists() and disorder.chance.random() < 0.5:
        _move(path, moved)
        disorder.lent.add(f"x/{moved.name}")
        return f"{path.name} was moved out and is a link to it"
    kind = disorder.chance.choice(["a link to a folder", "a link to a file", "a dangling link", "garbage", "a FIFO"])
    disorder.replace(path, kind)
    disorder.lent.add("x/y")
    return f"{path.name} is {kind}"


def odd_pointer(disorder: Disorder) -> str | None:
    """Let the pointer name what is no generation of ours."""
    try:
        value: dict[str, Any] = json.loads(disorder.home.current.read_bytes())
    except (OSError, ValueError):
        return None
    key = disorder.chance.choice(["generation", "previous", "previous"])
    value[key] = disorder.chance.choice(IDS)
    if disorder.home.current.is_symlink():
        return None
    disorder.home.current.write_text(json.dumps(value))
    return f"current.json {key} = {str(value[key])[:40]!r}"


def odd_manifest(disorder: Disorder) -> str | None:
    """Let a manifest say something else than what is there."""
    paths = [folder / "manifest.json" for folder in disorder.generations if (folder / "manifest.json").is_file()]
    if not paths:
        return None
    path = disorder.chance.choice(paths)
    if path.is_symlink() or path.stat().st_size > 10**6:
        return None
    try:
        value = json.loads(path.read_bytes())
        names = dict(value["distributions"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    names[disorder.chance.choice(NAMES)] = disorder.chance.choice(["1.0", "", "--all"])
    value["distributions"] = names
    if disorder.chance.random() < 0.3:
        value["id"] = "../" + value["id"]
    path.write_text(json.dumps(value))
    return f"{path.parent.name}/manifest.json names {sorted(names)[:3]!r:.80}"


def waiting(disorder: Disorder) -> str | None:
    """Let `deferred.json` name options, addresses, and folders outside."""
    folders = [{"path": str(disorder.outside()), "bytes": 5, "pid": 1}] if disorder.chance.random() < 0.5 else []
    names = disorder.chance.sample(NAMES, 3)
    path = disorder.home.data / "deferred.json"
    if path.is_symlink() or path.exists() or not disorder.home.data.is_dir():
        return None
    path.write_text(json.dumps({"schema": 1, "folders": folders, "names": names}))
    return f"deferred.json {names!r:.100}"


def foreign_folder(disorder: Disorder) -> str | None:
    """Put folders and files of the owner's into the home."""
    root = disorder.home.root
    name = disorder.chance.choice(["notes", "runtimes/own", "models/own", "tool/own", "data/own", "runtimes/2026-cpu"])
    path = root / name
    if path.exists() or not path.parent.resolve().is_relative_to(root.resolve()):
        return None
    path.mkdir(parents=True)
    (path / "file.txt").write_text("owned\n")
    disorder.foreign |= {name, f"{name}/file.txt"}
    return name


def planted_link(disorder: Disorder) -> str | None:
    """Put a link that leads out in the place of a generation, a tool environment, or something else that is removed."""
    home = disorder.home
    path = disorder.chance.choice(
        [
            *(home.runtimes / GENERATION, home.tool / "env-0123", home.tool / "env-x", home.models / ".staging-x"),
            *(home.data / ".own.tmp", home.root / ".imprint-trial", home.cache / ".imprint-link-x", home.tool / "uv"),
            *(home.data / "inplace" / "env-0123", home.data / "logs", home.data / ".current.json.12345678.tmp"),
        ]
    )
    if os.path.lexists(path) or not path.parent.resolve().is_relative_to(home.root.resolve()):
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    target = disorder.outside()
    path.symlink_to(target)
    return f"{path.relative_to(home.root)} -> {target.relative_to(disorder.scratch)}"


def link_within(disorder: Disorder) -> str | None:
    """Put a link that leads out into a generation, in the place of a folder or beside its files."""
    if not disorder.generations:
        return None
    folder = disorder.chance.choice(disorder.generations)
    inside = "lib/python*/site-packages"
    packages = next(iter(folder.glob(inside)), None)
    if packages is None or packages.is_symlink():
        return None
    name = disorder.chance.choice(
        ["onnxruntime", "nvidia", "link", "onnxruntime/capi", "numpy", "onnxruntime/part1.py"]
    )
    path = packages / name
    if not path.parent.is_dir() or path.parent.is_symlink():
        return None
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    target = disorder.outside()
    path.symlink_to(target)
    return f"{folder.name}/…/{name} -> {target.relative_to(disorder.scratch)}"


def hostile_rows(disorder: Disorder) -> str | None:
    """Let RECORDs of a generation name what lies outside of it."""
    records = [path for folder in disorder.generations for path in folder.glob("lib/python*/site-packages/*/RECORD")]
    if not records:
        return None
    record = disorder.chance.choice(sorted(records))
    rows = [
        "../../../../../../x,,",
        "../../../..,,",
        "..,,",
        f"{disorder.outside('x/file.txt')},,",
        "a\0b,,",
        "loop/x,,",
    ]
    chosen = disorder.chance.sample(rows, 2)
    content = record.read_text() + "".join(f"{row}\n" for row in chosen)
    record.unlink()  # it may be a link to the cache
    record.write_text(content)
    return f"{record.parent.name} {chosen!r}"


def moved_generation(disorder: Disorder) -> str | None:
    """Move a generation elsewhere and leave a link to it."""
    if not disorder.generations:
        return None
    folder = disorder.chance.choice(disorder.generations)
    moved = disorder.scratch / "x" / folder.name
    if moved.exists():
        return None
    _move(folder, moved)
    return f"{folder.name} is a link to where it was moved"


def half_made(disorder: Disorder) -> str | None:
    """Leave what a killed run leaves."""
    path = disorder.home.runtimes / GENERATION
    if os.path.lexists(path) or disorder.home.runtimes.is_symlink() or not disorder.home.runtimes.is_dir():
        return None
    (path / "lib").mkdir(parents=True)
    (path / "lib" / "link").symlink_to(disorder.outside("x/y"))
    return f"{GENERATION} is half made, with a link out of it"


def broken_generation(disorder: Disorder) -> str | None:
    """Remove or damage a part of a generation."""
    if not disorder.generations:
        return None
    folder = disorder.chance.choice(disorder.generations)
    paths = [path for path in sorted(folder.rglob("*")) if not path.is_symlink() and path.is_file()]
    if not paths:
        return None
    path = disorder.chance.choice([*paths, folder / "pyvenv.cfg", folder / "bin" / "python"])
    path.unlink(missing_ok=True)
    return f"{path.relative_to(disorder.home.runtimes)} is gone"


def _move(folder: Path, moved: Path) -> None:
    # Each file on its own, so that none shares its content with the cache, which may let go of it.
    subprocess.run(["cp", "-a", "--no-preserve=links", folder, moved], check=True)
    shutil.rmtree(folder)
    folder.symlink_to(moved)


DISORDERS: tuple[Callable[[Disorder], str | None], ...] = (
    *(odd_file, odd_file, odd_file, odd_folder, odd_folder, odd_pointer, odd_pointer, odd_manifest, odd_manifest),
    *(waiting, waiting, foreign_folder, planted_link, planted_link, planted_link, link_within, hostile_rows),
    *(moved_generation, half_made, broken_generation),
)


def disturb(disorder: Disorder) -> None:
    """Do a few of these things at random."""
    for _ in range(disorder.chance.choice([1, 1, 2, 2, 3])):
        change = disorder.chance.choice(DISORDERS)
        # What an earlier one put there may be in the way.
        with contextlib.suppress(OSError):
            if what := change(disorder):
                disorder.told.append(f"{change.__name__}: {what}")
