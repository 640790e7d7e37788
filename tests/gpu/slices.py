"""Cuts the files of a folder into slices that fit through a small door, and joins them on the other side.

    python slices.py cut WHEELS SLICES [--size BYTES]
    python slices.py join SLICES WHEELS

Standard library only: it runs on both sides. Every slice and every joined file is checked against its SHA-256; joining
names the slices that have not arrived, so that it can be run again after each of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

SIZE = 59 * 10**6
"""Bytes of a slice at most; the door lets 60 MB through."""

INDEX = "slices.json"


class MissingError(Exception):
    """Slices that are needed are not there, or not whole."""


def cut(source: Path, target: Path, size: int = SIZE) -> list[Path]:
    """Write every file of `source` as slices of at most `size` bytes, and the index that joining needs."""
    target.mkdir(parents=True, exist_ok=True)
    files: list[dict[str, Any]] = []
    written = []
    for path in sorted(path for path in source.iterdir() if path.is_file()):
        whole = hashlib.sha256()
        parts: list[dict[str, str]] = []
        with path.open("rb") as file:
            while content := file.read(size):
                name = f"{len(files):03}-{len(parts):03}.slice"
                (target / name).write_bytes(content)
                written.append(target / name)
                whole.update(content)
                parts.append({"name": name, "sha256": hashlib.sha256(content).hexdigest()})
        files.append({"name": path.name, "sha256": whole.hexdigest(), "slices": parts})
    (target / INDEX).write_text(json.dumps({"schema": 1, "files": files}, indent=1) + "\n", "utf-8")
    return written


def join(source: Path, target: Path) -> list[Path]:
    """Put the files together in `target`. Raises MissingError that names what is not there, and writes nothing then."""
    files = json.loads((source / INDEX).read_text("utf-8"))["files"]
    bad = [
        part["name"]
        for file in files
        for part in file["slices"]
        if not (source / part["name"]).is_file() or _digest(source / part["name"]) != part["sha256"]
    ]
    if bad:
        raise MissingError(f"{len(bad)} slices are missing or not whole: {', '.join(bad)}")
    target.mkdir(parents=True, exist_ok=True)
    made = []
    for file in files:
        path = target / Path(file["name"]).name
        with path.open("wb") as joined:
            for part in file["slices"]:
                joined.write((source / part["name"]).read_bytes())
        if _digest(path) != file["sha256"]:
            path.unlink()
            raise MissingError(f"{file['name']} is not what was cut")
        made.append(path)
    return made


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """Run one command; return 0, or 1 when slices are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("cut", "join"):
        command = commands.add_parser(name)
        command.add_argument("source", type=Path)
        command.add_argument("target", type=Path)
        command.add_argument("--size", type=int, default=SIZE)
    given = parser.parse_args()
    try:
        made = (
            cut(given.source, given.target, given.size) if given.command == "cut" else join(given.source, given.target)
        )
    except MissingError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write("".join(f"{path.name} {path.stat().st_size}\n" for path in made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
