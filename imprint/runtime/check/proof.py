"""What a check proved of a target, on what, and what of that has changed since: small enough to be asked every time.

A proof is kept where the target's records are: in a generation's manifest, or beside the receipt of somebody's own
environment. It holds while everything that it rests on is as it was; whether it still holds is found by looking at
files alone, and nothing is started.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from imprint import access, clock
from imprint.probing.processor import parse_cpu_flags, parse_cpu_name
from imprint.probing.this_machine import RealHost
from imprint.runtime.check.identity import CHECK_ID
from imprint.runtime.check.reads import Needs, needs_from_json
from imprint.runtime.check.result import CheckResult
from imprint.runtime.distributions import inventory
from imprint.runtime.distributions.embedding_needs import NEEDED
from imprint.runtime.distributions.records import read_text
from imprint.runtime.target import Target
from imprint.values import Record

_FOLDERS = ("onnxruntime", "numpy", "numpy.libs", "tokenizers", "tokenizers.libs", "orjson", "nvidia")
_STARTUP = ("sitecustomize.py", "usercustomize.py")
_LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES")
_CPUINFO = 16 * 1024
_MOST_FILES = 50_000

WORDS: Mapping[str, str] = {
    "build": "the build",
    "version": "the version",
    "files": "the files",
    "interpreter": "the Python",
    "processor": "the processor",
    "libraries": "the system's libraries",
    "loader": "the loader's variables",
    "check": "the check itself",
}
"""What a proof rests on, as a sentence names it."""


class Proof(Record):
    """One check of one target.

    `outcome` and `kind` are the check's, `detail` is the cause in one fragment, `provider` where it ran. `lacks` names
    the packages that embedding needs and that could not be imported. `on` maps what it rests on (the keys of `WORDS`)
    to what that was; what is not known is not there. `paths` are the system's libraries that were loaded, `reads` is
    the newest model that the build takes.
    """

    outcome: str
    kind: str | None = None
    detail: str | None = None
    provider: str | None = None
    time: str | None = None
    lacks: tuple[str, ...] = ()
    on: Mapping[str, str] = {}
    paths: tuple[str, ...] = ()
    reads: Needs | None = None

    @property
    def ok(self) -> bool:
        """Whether the target computed what it should."""
        return self.outcome == "ok"


def proof_of(result: CheckResult, target: Target, environ: Mapping[str, str]) -> Proof:
    """Return what a check of `target` that was just made proves."""
    return Proof(
        outcome=result.outcome,
        kind=result.kind,
        detail=result.detail,
        provider=result.provider,
        time=clock.now(),
        lacks=result.lacks,
        on=surroundings(target, environ, result.mapped),
        paths=result.mapped,
        reads=result.reads,
    )


def changed_since(proof: Proof, target: Target, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return which of the keys of `WORDS` are not as the proof says; empty while it holds. Reads, starts nothing."""
    now = surroundings(target, environ, proof.paths)
    return tuple(name for name in WORDS if proof.on.get(name) != now.get(name))


def surroundings(target: Target, environ: Mapping[str, str], paths: Iterable[str]) -> dict[str, str]:
    """Return what a check of `target` rests on now: each of the keys of `WORDS` that is known here.

    Files count by path, size, time and inode: whatever an installer or an editor does to them changes one of these.
    One that this user may not read is another one too.
    """
    found = {
        "build": target.build,
        "version": target.version,
        "files": _digest(_files_of(target.prefix)),
        "interpreter": _interpreter(target),
        "processor": _processor(),
        "libraries": _digest(_signature(path, path) for path in sorted(paths)),
        "loader": _digest(f"{name}={environ[name]}" for name in _LOADER if environ.get(name)),
        "check": CHECK_ID,
    }
    return {name: value for name, value in found.items() if value is not None}


def parse_proof(value: Mapping[str, Any] | None) -> Proof | None:
    """Return the proof that a record holds; None where it holds none that can be used."""
    if value is None or not value.get("on"):
        return None
    texts = {name: value.get(name) for name in ("kind", "detail", "provider", "time")}
    on, lacks, paths = value.get("on"), value.get("lacks"), value.get("paths")
    return Proof(
        outcome=str(value.get("outcome")),
        **{name: text if isinstance(text, str) else None for name, text in texts.items()},
        lacks=tuple(map(str, lacks)) if isinstance(lacks, list) else (),
        on={str(name): str(text) for name, text in on.items()} if isinstance(on, dict) else {},
        paths=tuple(map(str, paths)) if isinstance(paths, list) else (),
        reads=needs_from_json(value.get("reads")),
    )


def _interpreter(target: Target) -> str:
    """Name the interpreter by where it really is, what it is there, and what the environment says of its version."""
    real = os.path.realpath(target.python)
    config = read_text(target.prefix / "pyvenv.cfg", _CPUINFO) or ""
    told = [line.replace(" ", "") for line in config.splitlines() if line.partition("=")[0].strip().startswith("vers")]
    return _digest([_signature(real, real), *told])


def _processor() -> str | None:
    info = RealHost().read_text("/proc/cpuinfo", _CPUINFO) or ""
    name = parse_cpu_name(info) or os.environ.get("PROCESSOR_IDENTIFIER")
    flags = parse_cpu_flags(info)
    return _digest([name or "", *(flags or ())]) if name or flags else None


def _files_of(prefix: Path) -> Iterator[str]:
    packages = inventory.packages_folder(prefix)
    if packages is None:
        return
    try:
        with os.scandir(packages) as entries:
            top = sorted(entry.name for entry in entries)
    except OSError:
        return
    for name in top:
        if name in _STARTUP or name.endswith(".pth"):
            yield _signature(os.path.join(packages, name), name)  # noqa: PTH118 - thousands of these have to be fast
        elif name.partition("-")[0] in {"onnxruntime", "onnxruntime_gpu", "numpy", *NEEDED} and name.endswith("-info"):
            yield name
        elif name in _FOLDERS:
            yield from _below(os.path.join(packages, name), name)  # noqa: PTH118 - as above


def _below(folder: str, name: str) -> Iterator[str]:
    """Yield the signature of every file below a folder, those that links lead to included, in a stable order."""
    pending, seen = [(folder, name, 0)], 0
    while pending and seen < _MOST_FILES:
        path, inside, depth = pending.pop()
        try:
            with os.scandir(path) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            yield f"{inside} unreadable"
            continue
        for entry in found:
            if entry.name == "__pycache__":
                continue
            if depth < 16 and access.is_folder(Path(entry.path)):
                pending.append((entry.path, f"{inside}/{entry.name}", depth + 1))
            else:
                seen += 1
                yield _signature(entry.path, f"{inside}/{entry.name}")


def _signature(path: str, name: str) -> str:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of these have to be fast
    except (OSError, ValueError):
        return f"{name} gone"
    if not os.access(path, os.R_OK):
        return f"{name} unreadable"
    return f"{name} {status.st_size} {status.st_mtime_ns} {status.st_ino}"


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:32]
