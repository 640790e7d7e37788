"""Composes environments at random, from a seed: several distributions, then a few things that no installer would do.

`compose` tells what it did, and which paths of the environment are the owner's and have to stay as they are.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from support.foreign import BASE, CUDA12, CUDA13, NVIDIA, OWNERS
from support.handmade import Handmade
from support.sandbox import Entry

BUILDS = ("onnxruntime==1.31.1", "onnxruntime==1.26.0", "onnxruntime-gpu==1.31.1", "onnxruntime-gpu==1.26.0")


@dataclass(slots=True)
class Mess:
    """One environment in the making.

    `protected` are paths relative to its folder of packages, `ours` the names of dist-infos that are not the owner's,
    and `late` is what is to be done last, after a run that was interrupted.
    """

    made: Handmade
    chance: random.Random
    told: list[str] = field(default_factory=list)
    protected: set[str] = field(default_factory=set)
    ours: list[str] = field(default_factory=list)
    late: list[Callable[[], None]] = field(default_factory=list)

    def install(self, *pins: str) -> None:
        """Install what is not the owner's."""
        for pin in pins:
            self.made.install(pin)
            name, _, version = pin.partition("==")
            self.ours.append(f"{name.replace('-', '_')}-{version}.dist-info")
        self.told += [f"install {pin}" for pin in pins]

    def own(self, *pins: str) -> None:
        """Install what is the owner's."""
        for pin in pins:
            self.made.install(pin)
            self.protect_recorded(pin.partition("==")[0].replace("-", "_"))
        self.told += [f"owner's {pin}" for pin in pins]

    def protect_recorded(self, stem: str) -> None:
        """Protect every file that the distribution whose dist-info begins with `stem` records, and its dist-info."""
        info = self.made.info(stem)
        rows = (info / "RECORD").read_text().splitlines()
        self.protected.update(path for path in (row.split(",")[0] for row in rows) if not path.startswith(("/", "..")))
        self.protected.add(info.name)

    def plant(self, path: str, text: str | None = None) -> None:
        """Write a file of the owner's that nothing records."""
        full = self.made.packages / path
        if full.exists() or not full.parent.resolve().is_relative_to(self.made.scratch):
            return
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text if text is not None else f"owned: {path}\n")
        self.protected.add(path)

    def any_of_ours(self) -> str | None:
        """Return the name of a dist-info that is not the owner's, builds more often than others."""
        there = [name for name in self.ours if (self.made.packages / name).is_dir()]
        builds = [name for name in there if name.startswith("onnxruntime")]
        return self.chance.choice([*there, *builds, *builds, *builds]) if there else None

    def guarded(self) -> dict[str, Entry]:
        """Return the part of the environment that has to stay, as it is now."""
        now = self.made.environment()
        inside = self.made.packages.relative_to(self.made.prefix).as_posix()
        kept = {f"{inside}/{path}" for path in self.protected}
        kept |= {"bin/python", "bin/python3", "bin/activate", "pyvenv.cfg", "lib64", "share/empty"}
        return {path: now[path] for path in sorted(kept) if path in now}


def compose(made: Handmade, seed: int, *, whole: bool = False) -> Mess:
    """Write the environment of a seed into `made` and return what was done.

    With `whole` it begins with all that one build consists of, so that something is left to be pruned.
    """
    from support.hostile_twists import TWISTS

    chance = random.Random(f"environment {seed}")  # noqa: S311 - reproducible, not secret
    made.make()
    mess = Mess(made, chance)
    mess.own(*(pin for pin in OWNERS if chance.random() < 0.8))
    if whole:
        mess.install(*made.wheels.pins(chance.choice(["cpu", "cuda13", "cuda12"])), "tokenizers==0.23.3")
    else:
        mess.install(*(pin for pin in BASE if chance.random() < 0.7))
    if chance.random() < 0.3:
        chosen = [name for name in {*CUDA12, *CUDA13, "nvidia-cufft"} if name in NVIDIA]
        mess.install(*(f"{name}=={NVIDIA[name][0]}" for name in sorted(chosen) if chance.random() < 0.6))
    if chance.random() < 0.15:
        mess.own("nvidia-cublas-cu12==12.8.4.1", "nvidia-nccl-cu12==2.27.0", "asks-for-cuda12==2.0")
    for _ in range(chance.choice([0, 1, 1, 1, 1, 2, 2]) if not whole else 0):
        pin = chance.choice(BUILDS)
        mess.install(pin)
    own_more(mess)
    for _ in range(chance.choice([0, 1, 1, 2, 2, 3, 4])):
        twist = chance.choice(TWISTS)
        # A mode or a link that an earlier one set may be in the way.
        with contextlib.suppress(OSError):
            if what := twist(mess):
                mess.told.append(f"{twist.__name__}: {what}")
    return mess


def own_more(mess: Mess) -> None:
    """Write what hostile rows aim at: a package with unrecorded files, and a folder that nothing records."""
    made = mess.made
    made.own("own", {"own/__init__.py": "x = 1\n", "own/data.txt": "d\n"})
    mess.protect_recorded("own")
    mess.plant("own/unrecorded/notes.txt")
    mess.plant("neighbour/file.py")
    (made.packages / "neighbour" / "empty").mkdir()
    mess.protected |= {"own", "own/unrecorded", "neighbour", "neighbour/empty"}
