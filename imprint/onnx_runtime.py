"""Plumbing for launchers: `python -m imprint.onnx_runtime unused BUILD [--venv PATH]`.

Prints one distribution a line: what nothing needs in that environment once BUILD is its only build of ONNX Runtime.
Without `--venv` it is Imprint's own target. Needs `packaging`; reads files only, starts and changes nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from imprint import resources
from imprint.context import Context
from imprint.errors import ImprintError, UsageError
from imprint.hints import helps
from imprint.planning.builds import Build, parse_builds
from imprint.printable import printable_line
from imprint.probing.system import parse_architecture, parse_system
from imprint.runtime.distributions import inventory
from imprint.runtime.distributions.metadata import read_held
from imprint.runtime.distributions.pins import applying, marker_environment, read_lock
from imprint.runtime.distributions.records import read_text
from imprint.runtime.distributions.shipped import read_shipped
from imprint.runtime.distributions.unused import Known, Unused, find_unused
from imprint.runtime.foreign import journal
from imprint.runtime.target import current_target

_USAGE = "usage: python -m imprint.onnx_runtime unused BUILD [--venv PATH]"


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    try:
        build, prefix = parse_arguments(arguments)
        for found in unused_for(build, prefix, Context.of_process()):
            sys.stdout.write(printable_line(found.name) + "\n")
    except ImprintError as error:
        told = f" ({error.hint})" if error.hint else ""
        sys.stderr.write(printable_line(f"error: {error.message}{told}") + "\n")
        return error.exit_status
    return 0


def parse_arguments(arguments: Sequence[str]) -> tuple[str, Path | None]:
    """Return the build and the environment, None for Imprint's own. Raises UsageError."""
    words: list[str] = []
    prefix: Path | None = None
    rest = iter(arguments)
    for argument in rest:
        name, given, value = argument.partition("=")
        if name == "--venv":
            path = value if given else next(rest, "")
            if not path:
                raise UsageError("--venv needs the folder of an environment", hint=_USAGE)
            prefix = Path(path)
        elif argument.startswith("-"):
            raise UsageError(f"unknown option: {argument}", hint=_USAGE)
        else:
            words.append(argument)
    if len(words) != 2 or words[0] != "unused":
        raise UsageError("expected `unused` and the name of a build", hint=_USAGE)
    return words[1], prefix


def unused_for(name: str, prefix: Path | None, context: Context) -> tuple[Unused, ...]:
    """Return what is unused in an environment once the build `name` is its only one.

    Raises UsageError for an unknown build or a path that is no environment, and ImprintError when the build has no
    lock for that Python, or when Imprint has no target yet.
    """
    prefix = prefix.expanduser().absolute() if prefix is not None else _own(context)
    packages = inventory.packages_folder(prefix)
    if packages is None:
        raise UsageError(f"`{prefix}` is not an environment: it has no folder of packages")
    version = python_of(prefix, packages)
    markers = marker_environment(version)
    table = parse_builds(json.loads(resources.data_path("builds.json").read_text("utf-8")), {}, "")
    build = table.find(name)
    if build is None:
        raise UsageError(f"no build is named `{name}`; the builds are {', '.join(each.name for each in table.builds)}")
    pins = applying(read_lock(resources.lock_path(lock_of(build, version, markers))), markers)
    shipped = read_shipped()
    store = journal.store_of(context.home, prefix)
    receipt, interrupted = journal.read_receipt(store), journal.read_journal(store)
    known = Known(
        ever=shipped.ever,
        elsewhere=shipped.elsewhere,
        receipt=receipt.installed if receipt is not None else {},
        marked=frozenset(interrupted.uninstall if interrupted is not None else ()),
    )
    held = read_held(inventory.inspect(prefix))
    return find_unused(held, {pin.name for pin in pins}, known, markers)


def lock_of(build: Build, version: str, markers: Mapping[str, str]) -> str:
    """Return the lock that planning has for a build on the system and Python of `markers`. Raises ImprintError.

    Where it has none there, the lock for another system says what the build is made of as well.
    """
    here = (parse_system(markers["sys_platform"]), parse_architecture(markers["platform_machine"]))
    series = tuple(int(part) for part in version.split(".")[:2])
    fitting = [wheel for wheel in build.wheels if any(tuple(python) == series for python in wheel.pythons)]
    ordered = sorted(fitting, key=lambda wheel: ((wheel.os, wheel.arch) != here, wheel.os != here[0]))
    if not ordered:
        raise ImprintError(f"{build.name} has no wheels for Python {version}", code="python-no-wheel")
    return ordered[0].lock


def python_of(prefix: Path, packages: Path) -> str:
    """Return an environment's Python version from what its folder says, without starting anything."""
    text = read_text(prefix / "pyvenv.cfg") or ""
    stated = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+\.\d+)", text, re.MULTILINE)
    folder = re.fullmatch(r"python(\d+\.\d+)t?", packages.parent.name)
    if folder is not None and (stated is None or not stated[1].startswith(f"{folder[1]}.")):
        return f"{folder[1]}.0"
    if stated is None:
        raise UsageError(f"`{prefix}` is not an environment: nothing there says which Python it has")
    return stated[1]


def _own(context: Context) -> Path:
    found = current_target(context.home)
    if found is None:
        raise ImprintError("Imprint has no runtime of its own yet", hint=helps("name-an-environment"), code="no-target")
    return found.prefix


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
