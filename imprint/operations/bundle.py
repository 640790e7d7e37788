"""`bundle`: writes all that a machine without network needs into a folder: wheels, locks, model, the tool itself."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from imprint import ownership, resources
from imprint.context import Context
from imprint.embedding import catalogue
from imprint.errors import ImprintError, UsageError
from imprint.hints import helps
from imprint.paths import Home
from imprint.planning.builds import CUDA, Wheel
from imprint.planning.gates import wheel_for
from imprint.planning.model import Machine, Plan, Platform, Python
from imprint.planning.rule import asks_for_gpu
from imprint.provisioning.options import SetupOptions, free_threaded, sources_of
from imprint.results import Notice, Result
from imprint.runtime.distributions.embedding_needs import BASE_LOCK
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.installer import bundle as collecting
from imprint.runtime.installer import space
from imprint.runtime.installer.bundle_folder import Folder
from imprint.runtime.installer.uv import TargetPlatform, Uv, find_uv
from imprint.runtime.interrupts import interruptible
from imprint.runtime.managed.recipe import own_python
from imprint.situation.asked import unused_gpu_device
from imprint.situation.documents import LONGEST, parse_python_option, read_machine
from imprint.situation.inputs import gather_what_if, load_builds
from imprint.sizes import in_units
from imprint.state import config
from imprint.state.files import raise_for_write
from imprint.values import Record, replace

PLATFORMS = re.compile(r"(?P<os>linux|windows|macos)-(?P<arch>x86_64|aarch64)")

TOOL_LOCKS = ("tool.txt", "uv.txt")
"""What the launcher's own first start needs there."""


class BundleOptions(Record):
    """What to collect, and where to. `target` is a platform such as `linux-x86_64`, or the file of a machine document.

    `python` replaces the target's Python. `lock_path` finds the locks; tests have their own.
    """

    target: str
    folder: Path
    python: str | None = None
    index_url: str | None = None
    find_links: Path | None = None
    lock_path: Callable[[str], Path] = resources.lock_path
    tool_locks: tuple[str, ...] = TOOL_LOCKS


class Bundle(Record):
    """What is in a bundle's folder; `platform` is the installer's name for it, `next` the command to run there."""

    folder: str
    plan: Plan
    builds: tuple[str, ...]
    platform: str
    python: str
    model: str
    files: int
    bytes: int
    next: str = "imprint setup --offline --find-links DIR"


def bundle(context: Context, options: BundleOptions, on_event: OnEvent) -> Result[Bundle]:
    """Write the bundle and return what it holds; files that are right already are kept, so a second run resumes.

    It holds what is planned for the machine and the CPU build to fall back to. A platform alone names no GPU: when one
    is asked for, the first GPU build that exists there comes along. Raises UsageError, NetworkError, IntegrityError,
    NoSpaceError, and ImprintError where nothing can be planned.
    """
    sources = sources_of(SetupOptions(find_links=options.find_links, index_url=options.index_url))
    machine, named = _machine_of(options)
    inputs = gather_what_if(context, machine)
    plan = inputs.plan
    if plan.build is None:
        raise ImprintError(plan.reason, hint=plan.hint, code=plan.code)
    if (refused := free_threaded(machine)) is not None:
        raise ImprintError(refused.message, hint=refused.hint, code=refused.code)
    builds = _builds(machine, plan.build, with_gpu=named and asks_for_gpu(inputs.request))
    model = catalogue.load_catalogue().model(
        config.load(context.home, context.environ, context.flags).text("model.name")
    )
    names = [*options.tool_locks, BASE_LOCK, *(wheel.lock for wheel in builds.values()), model.lock]
    python = parse_series(machine.python)
    spot = collecting.spot_of(machine.platform, python)
    root = options.folder.absolute()
    _refuse_own(context.home, root)
    uv = find_uv(context.home, context.environ, sources)
    with interruptible("bundle"):
        _claim(context)
        folder = Folder(root)
        locks = {name: options.lock_path(name) for name in dict.fromkeys(names)}
        wanted = _wanted(context.home, uv, locks, spot)
        manifest = collecting.manifest_of(wanted, collecting.digests_of(locks), spot)
        folder.begin(manifest, locks)
        size = _fetch(wanted, folder, uv, on_event)
        folder.finish(manifest)
    files = len(manifest["wheels"])
    made = Bundle(str(root), plan, tuple(builds), spot.triple, spot.python, model.name, files, size)
    warnings = unused_gpu_device(context)
    if named and asks_for_gpu(inputs.request) and len(builds) < 2:
        warnings += (Notice("no-gpu-build", "no GPU build exists for that platform; the CPU build is in the bundle"),)
    return Result(made, warnings=warnings)


def _refuse_own(home: Home, root: Path) -> None:
    """Raise UsageError for a folder in the home, or where one of the home's folders leads: we remove things there."""
    real = Path(os.path.realpath(root))
    for own in (home.root, home.runtimes, home.models, home.data, home.tool, home.cache):
        if real.is_relative_to(os.path.realpath(own)):
            raise UsageError(
                f"`{root}` is in Imprint's own folder `{own}`, where Imprint removes what it no longer needs",
                hint=helps("another-folder-for-a-bundle"),
            )


def _claim(context: Context) -> None:
    """Make sure that the home, whose cache is used, is ours. Raises ImprintError (`not-ours`, `home-not-writable`)."""
    try:
        ownership.claim(context.home)
    except OSError as error:
        raise_for_write(context.home.root, error, context.home.root)


def _wanted(home: Home, uv: Uv, locks: dict[str, Path], spot: TargetPlatform) -> dict[str, tuple[collecting.File, ...]]:
    """Return the wheels of each lock. Raises as `files_of`, and ImprintError where the home takes no working files."""
    try:
        return {name: collecting.files_of(uv, lock, spot) for name, lock in locks.items()}
    except OSError as error:
        raise_for_write(home.root, error, home.root)


def parse_series(python: Python) -> str:
    """Return a Python as the installer takes it, `3.12`; a free-threaded one with its `t`."""
    found = re.match(r"(\d+\.\d+)", python.version or "")
    if found is None:
        raise UsageError("the Python version of that machine is not known", hint=helps("name-the-python"))
    free = (python.abi or "").endswith("t") or (python.version or "").endswith("t")
    return found[1] + ("t" if free else "")


def _machine_of(options: BundleOptions) -> tuple[Machine, bool]:
    """Return the machine to collect for, and whether only its platform was named."""
    found = PLATFORMS.fullmatch(options.target)
    if found is not None:
        machine = Machine(platform=Platform(found["os"], found["arch"]), python=Python(own_python(), None))
    elif Path(options.target).exists():
        machine = read_machine(options.target, lambda: b" " * LONGEST)
    else:
        raise UsageError(
            f"`{options.target}` is neither a file nor a platform",
            hint=helps("name-a-platform"),
        )
    if options.python is not None:
        machine = replace(machine, python=parse_python_option(options.python))
    return machine, found is not None


def _builds(machine: Machine, planned: str, *, with_gpu: bool) -> dict[str, Wheel]:
    """Return the wheels of the planned build, of a GPU build where one is wanted, and of the CPU build."""
    table = load_builds(digests=False)
    chosen: dict[str, Wheel] = {}
    for build in table.builds:
        wheel = wheel_for(build, machine)
        if not isinstance(wheel, Wheel):
            continue
        gpu = with_gpu and build.kind == CUDA and not chosen
        if gpu or build.name == planned or build == table.cpu:
            chosen[build.name] = wheel
    return chosen


def _fetch(
    wanted: dict[str, tuple[collecting.File, ...]],
    folder: Folder,
    uv: Uv,
    on_event: OnEvent,
) -> int:
    every = {file.name: file for found in wanted.values() for file in found}
    missing = [file for file in every.values() if not (folder.root / file.name).is_file()]
    total = sum(file.size or 0 for file in missing)
    space.require(total, folder.root)
    done = 0

    def on_bytes(count: int) -> None:
        nonlocal done
        done += count
        on_event(Event("progress", "download", "collecting wheels", done, total or None))

    size = sum(folder.fetch(file, uv, on_bytes) for file in every.values())
    on_event(Event("done", "download", f"{len(every)} wheels, {in_units(size)}", size, size))
    return size
