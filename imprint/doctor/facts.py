"""What the checks judge: facts gathered beforehand, so that every check is a function of values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from imprint.errors import ImprintError
from imprint.planning.model import Plan


@dataclass(frozen=True, slots=True)
class Aside:
    """A state file that was damaged and has been renamed; `message` says both paths."""

    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The target's interpreter: its path, whether it is there, and the version it answered with."""

    path: str
    present: bool
    version: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Damage:
    """One installed package that is not as its RECORD says.

    `kind` is missing, size, hash (of files), no-record, no-metadata, no-installer, or hollow (ONNX Runtime without its
    modules); `count` says how many files, `example` names one.
    """

    distribution: str
    kind: str
    count: int = 1
    example: str | None = None


@dataclass(frozen=True, slots=True)
class Runtimes:
    """The ONNX Runtime distributions in the target (`onnxruntime-gpu 1.31.1`), and every damage in it."""

    builds: tuple[str, ...] = ()
    distributions: int = 0
    damages: tuple[Damage, ...] = ()
    hashed: bool = False


@dataclass(frozen=True, slots=True)
class Disk:
    """Free bytes where the home lies, and what the planned download and its unpacked files need."""

    free: int
    needed: int | None
    where: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything gathered for one run of doctor. None: not gathered, `failures` then has the error under that name."""

    home: str
    home_error: str | None = None
    asides: tuple[Aside, ...] = ()
    unknown_variables: tuple[tuple[str, str | None], ...] = ()
    device_asked: str | None = None
    provisioned: bool | None = None
    runs_on: str = "none"
    interpreter: Interpreter | None = None
    runtimes: Runtimes | None = None
    plan: Plan | None = None
    model: str | None = None
    disk: Disk | None = None
    failures: Mapping[str, ImprintError] = field(default_factory=dict)
