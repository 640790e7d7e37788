"""Makes, switches and removes generations of the managed target. The caller holds the mutex throughout.

A generation is built in a folder of its own beside the others, proved there, and becomes current by one atomic
write; until then nothing that is in use has been touched, so an interruption at any point leaves the old one.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from imprint import access, clock, touch
from imprint.errors import ImprintError, IntegrityError
from imprint.hints import helps
from imprint.paths import Home
from imprint.planning.model import Device
from imprint.runtime import interrupts, target
from imprint.runtime.check.proof import proof_of
from imprint.runtime.check.result import CheckResult
from imprint.runtime.checkpoint import reached
from imprint.runtime.distributions import inventory
from imprint.runtime.distributions.damage import words_of
from imprint.runtime.distributions.inventory import Inventory
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.installer import space
from imprint.runtime.installer.uv import Uv
from imprint.runtime.managed.recipe import Recipe
from imprint.runtime.target import Manifest, Pointer, Target
from imprint.state import files
from imprint.state.files import raise_for_write
from imprint.values import Record, replace

KEEP_BELOW = 300 * 10**6
"""The generation before is kept for a rollback when it takes fewer bytes than this beyond what it shares."""

_OURS = re.compile(r"\d{8}T\d{6}Z-[\w.-]+")

Check = Callable[[Path, Device | None, Mapping[str, str]], CheckResult]


class Staged(Record):
    """A generation that is built and was checked, but is not current. `manifest` lacks nothing but being written."""

    prefix: Path
    manifest: Manifest
    check: CheckResult


def faults_of(found: Target, recipe: Recipe) -> tuple[str, ...]:
    """Return why a recorded generation is not, or no longer, what `recipe` makes; empty when it is whole.

    That it failed a check is none: what did not compute may have been mended outside, which another check shows. Reads
    sizes and metadata only; nothing is started.
    """
    manifest = found.manifest
    if manifest is None:
        return ("it has no manifest",)
    faults: list[str] = []
    if (manifest.build, manifest.version) != (recipe.build, recipe.version):
        faults.append(f"it contains {manifest.build} {manifest.version}")
    elif dict(manifest.locks) != dict(recipe.digests):
        faults.append("the locks have changed")
    if _series(manifest.python) != _series(recipe.python):
        faults.append(f"it was created for Python {manifest.python}, but this is {recipe.python}")
    if found.refused is not None:
        faults.append(found.refused.message)
    # Reading every file's size takes a while, and nothing is gained by it once it is replaced anyway.
    return tuple(faults) or damage_of(found)


def note_check(home: Home, found: Target, result: CheckResult, environ: Mapping[str, str]) -> None:
    """Write down in its manifest what a later check of a generation proved about it. The caller holds the mutex."""
    if found.manifest is None or found.generation is None:
        return
    if result.device is not None and not result.ok:
        # It says something about that GPU (a verdict does), not about the files.
        return
    if result.device is None and found.waits_for_gpu:
        # What is made elsewhere is the check on a GPU.
        return
    manifest = replace(found.manifest, check=proof_of(result, found, environ).to_json())
    path = target.generation_folder(home, found.generation) / "manifest.json"
    files.write_json(path, target.manifest_to_json(manifest), within=home.runtimes)


def damage_of(found: Target) -> tuple[str, ...]:
    """Return what is broken in a recorded generation; empty when everything its manifest lists is there."""
    if found.refused is not None:
        return ()
    if found.fault is not None:
        return (found.fault,)
    seen = inventory.inspect(found.prefix)
    expected = dict(found.manifest.distributions) if found.manifest is not None else {}
    differing = sorted(name for name in {*expected, *seen.versions} if expected.get(name) != seen.versions.get(name))
    faults = [f"{name} is not what was installed" for name in differing]
    if seen.problems:
        first = seen.problems[0]
        more = f" and {len(seen.problems) - 1} more" if len(seen.problems) > 1 else ""
        faults.append(f"{first.distribution}: {words_of(first.kind, example=first.path)}{more}")
    return tuple(faults)


def find_whole(home: Home, recipe: Recipe) -> Target | None:
    """Return a complete generation that `recipe` made and that nothing points to, for example after a kill."""
    for folder in sorted(_folders(home), reverse=True):
        manifest = target.read_manifest(home, folder.name)
        if manifest is None:
            continue
        found = target.managed_target(home, manifest)
        if not faults_of(found, recipe):
            return found
    return None


def stage(  # noqa: PLR0913 - all but the first three are keywords
    home: Home,
    uv: Uv,
    recipe: Recipe,
    *,
    device: Device | None,
    environ: Mapping[str, str],
    check: Check,
    elsewhere: bool = False,
    deep: bool = False,
    on_event: OnEvent,
) -> Staged:
    """Build a generation beside the others, verify its files, and run the check in it.

    With `deep` every file's hash is compared, not only its size. The check's answer is in the result, good or bad.
    `elsewhere` says that it does not count as the generation's own, since another machine will run it.
    Whatever stops this, the half-made folder is removed. Raises as `Uv.install` does, and IntegrityError when the
    files are not what their RECORD says even after a fresh download.
    """
    stamp = clock.stamp()
    prefix = home.runtimes / f"{stamp}-{recipe.build}-{recipe.version}-{os.urandom(2).hex()}"
    try:
        touch.make_folder(prefix, within=home.runtimes)
    except OSError as error:
        raise_for_write(prefix, error)
    with _removed_on_failure(prefix):
        seen = _install(uv, recipe, prefix, deep, on_event)
        reached("verified")
        result = check(target.interpreter_of(prefix), device, environ)
        reached("checked")
        manifest = Manifest(
            id=prefix.name,
            build=recipe.build,
            version=recipe.version,
            locks=recipe.digests,
            python=recipe.python,
            python_executable=str(recipe.executable),
            uv=uv.version(),
            created=clock.now(),
            distributions={found.name: found.version or "" for found in seen.distributions},
            size=sum(found.size for found in seen.distributions),
        )
        if not elsewhere:
            made = Target(
                prefix, target.interpreter_of(prefix), True, prefix.name, recipe.build, recipe.version, None, manifest
            )
            manifest = replace(manifest, check=proof_of(result, made, environ).to_json())
        return Staged(prefix, manifest, result)


def switch(home: Home, staged: Staged) -> Target:
    """Make a staged generation current, and note the one before as the candidate for a rollback.

    When this is interrupted the folder stays: it may be current already, and the next run decides by the pointer.
    """
    files.write_json(staged.prefix / "manifest.json", target.manifest_to_json(staged.manifest), within=home.runtimes)
    reached("manifest-written")
    return point_to(home, staged.manifest)


def point_to(home: Home, manifest: Manifest) -> Target:
    """Make a complete generation current."""
    before = target.read_pointer(home)
    previous = before.generation if before is not None and before.generation != manifest.id else None
    pointer = Pointer(manifest.id, clock.now(), previous)
    target.write_pointer(home, pointer)
    interrupts.leaves("changed-already")
    reached("pointer-flipped")
    return target.managed_target(home, manifest, pointer.since)


def discard(staged: Staged) -> None:
    """Remove a staged generation that must not become current."""
    touch.remove_tree(staged.prefix, within=staged.prefix.parent)


def folders(home: Home) -> tuple[Path, ...]:
    """Return the folders of generations, finished or not; anything else in `runtimes/` is not ours to touch."""
    return tuple(_folders(home))


def _folders(home: Home) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for entry in home.runtimes.iterdir():
            if _OURS.fullmatch(entry.name) and access.is_folder(entry) and not entry.is_symlink():
                yield entry


def _series(version: str) -> tuple[str, ...]:
    return (*version.split(".")[:2], "t" if version.endswith("t") else "")


def _install(uv: Uv, recipe: Recipe, prefix: Path, deep: bool, on_event: OnEvent) -> Inventory:
    def on_bytes(count: int) -> None:
        # What is downloaded lies beside what is unpacked of it for a moment: the total is what stays.
        done = count if recipe.needed is None else min(count, recipe.needed)
        on_event(Event("progress", "download", "downloading and unpacking, on disk so far", done, recipe.needed))

    needed = _preflight(uv.home, recipe, on_event)
    on_event(Event("start", "install", f"installing ONNX Runtime {recipe.version} (build {recipe.build})"))
    uv.create(prefix, recipe.executable)
    reached("environment-created")
    python = target.interpreter_of(prefix)
    if uv.install(recipe.locks, python=python, needed=needed, on_bytes=on_bytes):
        on_event(Event("done", "download", "downloaded and unpacked", recipe.needed, recipe.needed))
    reached("installed")
    on_event(Event("start", "verify", "verifying the installed files"))
    seen = inventory.inspect(prefix, deep=deep)
    bad = sorted({problem.distribution for problem in seen.problems})
    if bad:
        # The cache shares its files with every environment made from it: what damaged one damaged the source.
        told = f"the cache contains damaged files of {', '.join(bad)}; downloading them again"
        on_event(Event("warning", "verify", told))
        uv.clean(bad)
        # From the start: an installer that reinstalls removes first whatever a damaged RECORD names.
        touch.remove_tree(prefix, within=uv.home.runtimes)
        uv.create(prefix, recipe.executable)
        uv.install(recipe.locks, python=python, needed=needed, on_bytes=on_bytes)
        seen = inventory.inspect(prefix, deep=deep)
    _require_whole(seen, recipe)
    on_event(Event("done", "install", f"{len(seen.distributions)} packages, every file as recorded"))
    return seen


def _preflight(home: Home, recipe: Recipe, on_event: OnEvent) -> int | None:
    """Return the bytes that a download takes here; where links do not work each file is there twice."""
    try:
        linked = space.can_link(home.cache, home.runtimes)
    except OSError as error:
        raise_for_write(Path(os.fsdecode(error.filename or home.cache)), error)
    if linked:
        return recipe.needed
    on_event(Event("warning", "install", "the runtime cannot hard-link files from the cache: they are copied"))
    if recipe.needed is None:
        return None
    space.require(recipe.needed, home.runtimes)
    return 2 * recipe.needed


def _require_whole(seen: Inventory, recipe: Recipe) -> None:
    if seen.problems:
        first = seen.problems[0]
        raise IntegrityError(
            f"{first.distribution} is not as its RECORD says: {words_of(first.kind, example=first.path)}",
            hint=helps("setup-again-nothing-changed"),
        )
    runtimes = seen.runtime_distributions
    if len(runtimes) != 1 or runtimes[0].version != recipe.version:
        names = ", ".join(f"{found.name} {found.version}" for found in runtimes) or "no ONNX Runtime"
        raise ImprintError(f"the locks of {recipe.build} installed {names}", code="lock-wrong")
    if seen.runtime is None or (seen.runtime.package, seen.runtime.version) != (runtimes[0].name, recipe.version):
        raise IntegrityError(f"the files installed by {runtimes[0].name} are not of version {recipe.version}")


@contextlib.contextmanager
def _removed_on_failure(prefix: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        touch.remove_tree(prefix, within=prefix.parent)
        raise
