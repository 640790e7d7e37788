"""Decides what an environment of somebody else's has to lose and to get for a build of ONNX Runtime. Pure.

Only builds of ONNX Runtime, NVIDIA's wheels and missing requirements change. What the environment shares with its
owner stays when the build accepts it, and is a refusal that names both versions when it does not. It is one long file
because it is one decision, with its refusals.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement

from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.runtime.distributions.claims import folders_of
from imprint.runtime.distributions.inventory import RuntimePackage, is_runtime, normalize
from imprint.runtime.distributions.metadata import InstalledDistribution, is_vendor
from imprint.runtime.distributions.pins import Pin, runtime_pin
from imprint.runtime.distributions.unused import (
    Known,
    Need,
    find_unused,
    holds,
    needs_of_remaining,
    parse_requirements,
    satisfied,
)
from imprint.runtime.place import Replaced, Requirer, Stays

_CUDA_SUFFIX = re.compile(r"-cu\d+$")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is planned: the entries of the lock for this target, and what the build itself requires of others.

    `rests` are files in the folder of ONNX Runtime that no package claims: with one, a build is installed anew, since
    they may be its own.
    """

    pins: tuple[Pin, ...]
    requires: tuple[str, ...] = ()
    repair: bool = False
    rests: tuple[str, ...] = ()

    @property
    def runtime(self) -> Pin:
        """The entry that is the build of ONNX Runtime."""
        found = runtime_pin(self.pins)
        if found is None:
            raise ImprintError("the lock pins no build of ONNX Runtime for this Python", code="lock-incomplete")
        return found


@dataclass(frozen=True, slots=True)
class Replacement:
    """The decision. `uninstall` holds names, `install` entries of the lock; `changes` is what a person is told."""

    install: tuple[Pin, ...]
    uninstall: tuple[str, ...]
    changes: tuple[Replaced, ...]
    requirers: tuple[Requirer, ...]
    stays: tuple[Stays, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.install and not self.uninstall


def decide_replacement(
    held: Sequence[InstalledDistribution],
    package: RuntimePackage | None,
    wanted: Wanted,
    known: Known,
    environment: Mapping[str, str],
) -> Replacement:
    """Return what has to change so that the environment holds exactly the planned build.

    `package` is what the files in `onnxruntime` say they are. Raises ImprintError, code `shared-out-of-range`, when
    something shared would have to change, `shared-files` when a planned library and one that has to stay are two
    versions of the same files, and `not-from-a-wheel` when something would have to go that no wheel installed.
    """
    planned = frozenset(pin.name for pin in wanted.pins)
    unused = find_unused(held, planned, known, environment)
    leaving = frozenset(found.name for found in unused)
    needs = needs_of_remaining(held, planned, leaving, known, environment)
    groups = _by_name(held)
    _refuse_same_library(groups, wanted, leaving)
    seen = _Seen(groups, package, wanted, known, needs, leaving)
    install: dict[str, str] = {}
    stays: list[Stays] = []
    for pin in wanted.pins:
        judged = seen.judge(pin)
        if isinstance(judged, Stays):
            stays.append(judged)
        elif judged is not None:
            install[pin.name] = judged
    build = f"{wanted.runtime.name} {wanted.runtime.version}"
    refuse_out_of_range(wanted.requires, held, install, build, environment)
    _add_damaged_survivors(wanted, groups, leaving, install)
    uninstall = sorted({*leaving, *(name for name in install if name in groups)})
    _refuse_foreign(groups, uninstall)
    return Replacement(
        install=tuple(pin for pin in wanted.pins if pin.name in install),
        uninstall=tuple(uninstall),
        changes=_changes(wanted, install, {found.name: found.reason for found in unused}, groups),
        requirers=tuple(_requirers(held, leaving, wanted, environment)),
        stays=tuple(stays),
    )


def refuse_out_of_range(
    requires: Iterable[str],
    held: Sequence[InstalledDistribution],
    coming: Collection[str],
    build: str,
    environment: Mapping[str, str],
) -> None:
    """Raise ImprintError when something installed, and not `coming` anew, is outside what the build requires."""
    groups = _by_name(held)
    for requirement in parse_requirements(requires):
        name = normalize(requirement.name)
        if name in coming or name not in groups or not holds(requirement, environment):
            continue
        for found in groups[name]:
            if found.version is not None and not satisfied(requirement, found.version):
                holders = _who_holds(requirement, found.version, held, environment)
                if holders:
                    hint = helps("another-version-of-holder", holders=" and ".join(holders), requirement=requirement)
                else:
                    hint = helps("install-requirement", requirement=requirement)
                raise ImprintError(
                    f"`{name}` {found.version} is installed in that environment{_asked_by(holders)}, "
                    f"and {build} needs `{requirement}`",
                    hint=hint,
                    code="shared-out-of-range",
                )


def _who_holds(
    wanted: Requirement, version: str, held: Sequence[InstalledDistribution], environment: Mapping[str, str]
) -> list[str]:
    """Return who keeps a distribution at `version`: whoever takes that and none of the versions that `wanted` names."""
    name, named = normalize(wanted.name), [one.version for one in wanted.specifier]
    asking = []
    for found in held:
        for requirement in parse_requirements(found.requires):
            if normalize(requirement.name) != name or found.is_build or not holds(requirement, environment):
                continue
            if satisfied(requirement, version) and not any(satisfied(requirement, one) for one in named):
                asking.append(f"`{found.name}` {found.version or 'of unknown version'} (`{requirement}`)")
    return asking


def _asked_by(holders: Sequence[str]) -> str:
    return f", where {' and '.join(holders)} {'asks' if len(holders) == 1 else 'ask'} for it" if holders else ""


@dataclass(frozen=True, slots=True)
class _Seen:
    """Everything one planned distribution is judged by."""

    groups: Mapping[str, Sequence[InstalledDistribution]]
    package: RuntimePackage | None
    wanted: Wanted
    known: Known
    needs: Mapping[str, Sequence[Need]]
    leaving: frozenset[str]

    def judge(self, pin: Pin) -> str | Stays | None:
        """Return why it is installed (again), that another version stays, or None when it is right."""
        group = self.groups.get(pin.name, ())
        if is_runtime(pin.name):
            return self._judge_runtime(pin, group)
        if not group:
            self._refuse_unfit(pin)
            return "missing"
        found = group[0]
        broken = _broken(group)
        mine = self.known.receipt.get(pin.name) == found.version
        if found.version == pin.version:
            ours = mine or is_vendor(pin.name)
            return broken or ("repair was asked for" if self.wanted.repair and ours else None)
        if is_vendor(pin.name):
            return self._judge_library(pin, found, broken)
        if broken and (mine or found.version is None):
            self._refuse_unfit(pin)
            return broken
        why = f"it is {broken}, but the lock does not contain it" if broken else "it is shared"
        return Stays(pin.name, found.version, pin.version, why)

    def _judge_runtime(self, pin: Pin, group: Sequence[InstalledDistribution]) -> str | None:
        package = self.package
        if not group:
            return "missing"
        if group[0].version != pin.version:
            return "another version is planned"
        if broken := _broken(group):
            return broken
        if any(found.is_build for name in self.leaving for found in self.groups[name]):
            return "another build is in the same folder"
        if package is None or package.package != pin.name or package.version != pin.version:
            what = f"{package.package} {package.version}" if package is not None and package.package else "no build"
            return f"its files are those of {what}"
        return self._why_anew()

    def _why_anew(self) -> str | None:
        if self.wanted.rests:
            return f"`{self.wanted.rests[0]}` beside it does not belong to any package"
        return "repair was asked for" if self.wanted.repair else None

    def _judge_library(self, pin: Pin, found: InstalledDistribution, broken: str | None) -> str | Stays | None:
        needs = self.needs.get(pin.name, ())
        if not broken and needs and _major(found.version) == _major(pin.version):
            return Stays(pin.name, found.version, pin.version, f"{_holders(needs)} requires it")
        self._refuse_unfit(pin, found)
        return broken or "another version is planned"

    def _refuse_unfit(self, pin: Pin, found: InstalledDistribution | None = None) -> None:
        unfit = [need for need in self.needs.get(pin.name, ()) if not satisfied(need.requirement, pin.version)]
        if not unfit:
            return
        have = f"`{pin.name}` {found.version} is there and" if found is not None else f"`{pin.name}` is"
        raise ImprintError(
            f"{have} required by {_holders(unfit)} as `{unfit[0].requirement}`, "
            f"and the planned build comes with {pin.version}",
            # Only of a GPU's libraries the CPU build needs none.
            hint=helps("another-environment-or-cpu" if is_vendor(pin.name) else "another-environment"),
            code="shared-out-of-range",
        )


def _holders(needs: Iterable[Need]) -> str:
    return ", ".join(sorted({need.holder for need in needs}))


_ORIGINS = {
    "egg": "was not installed from a wheel, so it is not known which files belong to it",
    "link": "has metadata that is a link",
    "editable": "is installed in editable mode, from a checkout",
}


def _refuse_foreign(groups: Mapping[str, Sequence[InstalledDistribution]], names: Iterable[str]) -> None:
    """Raise ImprintError when something that has to go was not put there by an installer of wheels."""
    for name in names:
        for found in groups.get(name, ()):
            if found.origin != "wheel":
                where = f" (`{found.folder}`)" if found.folder is not None else ""
                raise ImprintError(
                    f"`{name}`{where} has to be replaced, but it {_ORIGINS[found.origin]}",
                    hint=helps("uninstall-yourself", name=name),
                    code="not-from-a-wheel",
                )


def _refuse_same_library(
    groups: Mapping[str, Sequence[InstalledDistribution]], wanted: Wanted, leaving: Collection[str]
) -> None:
    """Raise ImprintError when a library that stays is the planned one for another CUDA: they are the same files."""
    planned = {_CUDA_SUFFIX.sub("", pin.name): pin for pin in wanted.pins if is_vendor(pin.name)}
    for name, group in groups.items():
        pin = planned.get(_CUDA_SUFFIX.sub("", name))
        if not is_vendor(name) or pin is None or pin.name == name or name in leaving:
            continue
        if not any(_owns(pin.name, folder) for found in group for folder in _library_folders(found)):
            continue
        raise ImprintError(
            f"`{name}` {group[0].version} has to stay in that environment, because something there requires it, "
            f"and `{pin.name}` {pin.version} consists of the same files",
            hint=helps("another-environment-or-cpu"),
            code="shared-files",
        )


def _library_folders(found: InstalledDistribution) -> set[str]:
    return {path.split("/")[1] for path in found.files if path.startswith("nvidia/") and path.count("/") > 1}


def _owns(name: str, folder: str) -> bool:
    """Whether a planned wheel lies in the folder `nvidia/FOLDER`: CUDA 13 wheels share `cu13`, all but cuDNN."""
    if name.endswith("-cu12") or name == "nvidia-cudnn-cu13":
        return folder == _CUDA_SUFFIX.sub("", name).removeprefix("nvidia-").replace("-", "_")
    return folder == "cu13"


def _add_damaged_survivors(
    wanted: Wanted,
    groups: Mapping[str, Sequence[InstalledDistribution]],
    leaving: Collection[str],
    install: dict[str, str],
) -> None:
    """Add what loses files when something over the same files is uninstalled; such files exist once on disk."""
    changed = True
    while changed:
        going = [found for name in {*leaving, *install} for found in groups.get(name, ())]
        gone = {path for found in going for path in _own_files(found)}
        # What has no RECORD may have written over anything in its folders.
        folders = {folder for found in going if not found.files for folder in folders_of(found.name)}
        lost = [
            pin.name
            for pin in wanted.pins
            if is_vendor(pin.name)
            and pin.name not in install
            and any(
                path in gone or any(path.startswith(f"{folder}/") for folder in folders)
                for found in groups.get(pin.name, ())
                for path in _own_files(found)
            )
            and groups[pin.name][0].version == pin.version
        ]
        install.update(dict.fromkeys(lost, "it shares files with something that is removed"))
        changed = bool(lost)


def _own_files(found: InstalledDistribution) -> Iterable[str]:
    """Return recorded files with a content: empty `__init__.py` files of a common folder are put back, not fetched."""
    return (path for path in found.files if not path.endswith("__init__.py"))


def _changes(
    wanted: Wanted,
    install: Mapping[str, str],
    unused: Mapping[str, str],
    groups: Mapping[str, Sequence[InstalledDistribution]],
) -> tuple[Replaced, ...]:
    pins = {pin.name: pin for pin in wanted.pins}
    changes = [Replaced(name, groups[name][0].version, None, why) for name, why in unused.items()]
    changes += [
        Replaced(name, groups[name][0].version if name in groups else None, pins[name].version, why)
        for name, why in install.items()
    ]
    return tuple(sorted(changes, key=lambda change: change.name))


def _requirers(
    held: Sequence[InstalledDistribution], leaving: Collection[str], wanted: Wanted, environment: Mapping[str, str]
) -> Iterable[Requirer]:
    runtime = wanted.runtime
    for found in held:
        if found.name in leaving or found.is_build or is_vendor(found.name):
            continue
        for requirement in parse_requirements(found.requires):
            if _asks_for_runtime(requirement, environment):
                yield Requirer(
                    found.name,
                    found.version,
                    str(requirement),
                    f"{runtime.name} {runtime.version}",
                    satisfied(requirement, runtime.version),
                    normalize(requirement.name) == runtime.name,
                )


def _asks_for_runtime(requirement: Requirement, environment: Mapping[str, str]) -> bool:
    return is_runtime(normalize(requirement.name)) and holds(requirement, environment)


def _broken(group: Sequence[InstalledDistribution]) -> str | None:
    if len(group) > 1:
        return f"installed {len(group)} times"
    problems = group[0].problems
    return f"damaged: {', '.join(problems)}" if problems else None


def _by_name(held: Sequence[InstalledDistribution]) -> dict[str, list[InstalledDistribution]]:
    groups: dict[str, list[InstalledDistribution]] = {}
    for found in held:
        groups.setdefault(found.name, []).append(found)
    return groups


def _major(version: str | None) -> str | None:
    return version.partition(".")[0] if version is not None else None
