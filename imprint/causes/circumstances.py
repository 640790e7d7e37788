"""What a remedy has to fit: the traits of its circumstances, and the words that its commands need. Pure.

A trait that is not there does not hold, so a remedy that needs to know something is not printed where nobody knows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from imprint.planning.model import Machine
from imprint.quoting import POWERSHELL, quoted, shell_of
from imprint.values import Record, replace

SYSTEMS = frozenset({"linux", "macos", "windows", "posix", "powershell"})
"""The traits of a system and its shell, which hold whatever is looked at."""

TRAITS = frozenset(
    {
        *SYSTEMS,
        # what surrounds it, and whether this user is its administrator
        *("debian", "fedora", "wsl", "container", "root"),
        # what is looked at: Imprint's own runtime, or a named environment and its kind
        *("managed", "named", "virtual", "conda", "externally-managed", "changeable", "foreign-home"),
        # what is planned there, and who asked
        *("default-device", "asked-gpu", "gpu-planned", "cpu-planned", "as-planned", "pending", "kept"),
        # what a check says about its own finding
        *("theirs", "unconcerned", "old-runtime", "python-path", "loader-path", "checked-cpu"),
    }
)
"""Every trait that `when` may name; the name of a word is one too, and holds where the word is known."""

GENERAL: Mapping[str, str] = {
    "setup": "imprint setup",
    "check": "imprint check",
    "path": "PATH",
    "python": "PYTHON",
    "home": "FOLDER",
    "sudo": "sudo ",
    "user": '"$(id -un)"',
    "cost": "",
    "saving": "",
    "free": "",
    "near": "",
    "planned": "the planned version",
    "hint": "follow the hint in the output",
    "headers": "the development headers of that module's library",
    "library": "LIBRARY",
    "debian_package": "PACKAGE",
    "fedora_package": "PACKAGE",
    "variable": "LD_LIBRARY_PATH",
    "folder": "FOLDER",
    "program": "FILE",
    "owner": "another user",
    "key": "KEY",
    "file": "FILE",
    "folders": "FOLDERS",
    "size": "their space",
    "capabilities": "the GPUs that the finding names",
    "libcuda_folder": "the `compat` folder",
    "install": "install the packages that the finding names",
    "uninstall": "uninstall the clashing packages",
    "bring": "install the packages that provide the library",
    "reinstall": "force a reinstall of the package",
    "upgrade": "install the named package",
    "uninstall_builds": "`PYTHON -m pip uninstall` all builds",
    "install_planned": "`PYTHON -m pip install` the one you need",
    "install_again": "force a reinstall of ONNX Runtime",
}
"""What stands for each word where no circumstances are at hand: on the pages."""


class Circumstances(Record):
    """Where a remedy is to work: the traits that hold, and the words that are known."""

    traits: frozenset[str]
    words: Mapping[str, str]

    def holds(self, trait: str) -> bool:
        """Return whether a trait of `when` holds; `not-` negates it, and `a-word` holds where that word is known."""
        if trait.startswith("not-"):
            return not self.holds(trait.removeprefix("not-"))
        return trait in self.traits or trait.replace("-", "_") in self.words

    def with_(self, *traits: str, **words: str) -> Circumstances:
        """Return the circumstances with more traits and words."""
        return replace(self, traits=self.traits | set(traits), words={**self.words, **words})


def here(environ: Mapping[str, str], *, system: str | None = None, traits: Iterable[str] = ()) -> Circumstances:
    """Return the circumstances of this process; `system` as the machine document names it (None: this one's)."""
    system = system or {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    held = {*traits, system, "windows" if system == "windows" else "posix"}
    words = {"setup": "imprint setup", "check": "imprint check", "cost": "", "saving": "", "free": ""}
    if system == "windows":
        if shell_of(environ, "win32") == POWERSHELL:
            held.add("powershell")
        return Circumstances(frozenset(held), words)
    if getattr(os, "geteuid", lambda: 0)() == 0:
        held.add("root")
    words["sudo"] = "" if "root" in held else "sudo "
    # By number: a name may have to be asked of a network, for a remedy that nobody may need.
    words["user"] = str(os.geteuid()) if hasattr(os, "geteuid") else GENERAL["user"]
    for name in ("debian", "fedora"):
        if os.path.exists(f"/etc/{name}_version" if name == "debian" else "/etc/fedora-release"):  # noqa: PTH110
            held.add(name)
    return Circumstances(frozenset(held), words)


def of_machine(machine: Machine, environ: Mapping[str, str]) -> Circumstances:
    """Return the circumstances that a machine document describes, as far as planning needs it."""
    traits = [name for name in ("wsl", "container") if getattr(machine.platform, name)]
    words = {name: word for name, word in planning_words(machine).items() if word is not None}
    return here(environ, system=machine.platform.os, traits=traits).with_(**words)


def planning_words(machine: Machine) -> dict[str, str | None]:
    """Return the words of remedies for a driver; None for what is not known."""
    libcuda = machine.nvidia.libcuda
    compat = libcuda.rpartition("/")[0] if libcuda and "compat" in libcuda else None
    return {"libcuda_folder": quoted(compat) if compat else None}
