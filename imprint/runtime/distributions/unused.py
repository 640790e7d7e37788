"""Decides which installed distributions nothing needs once a build of ONNX Runtime is planned. Pure: values in and out.

What comes with any build is found by walking installed metadata from all that our locks ever named; of that, what the
planned build, another requirement file of ours or a remaining distribution needs stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.version import Version

from imprint.runtime.distributions.inventory import normalize
from imprint.runtime.distributions.metadata import InstalledDistribution, is_vendor

OLDER_NAMES = frozenset(
    f"nvidia-{part}{suffix}"
    for part in ("cublas", "cuda-nvrtc", "cuda-runtime", "cudnn", "cufft", "curand", "nvjitlink")
    for suffix in ("", "-cu11", "-cu12", "-cu13")
)
"""What locks named besides today's: cuFFT and nvJitLink of the full extras, the CUDA 11 and 12 families, and the
`-cu13` placeholders that the extras of onnxruntime-gpu 1.27 ask for. Read from the extras of onnxruntime-gpu 1.18 to
1.31 on 2026-11-29."""


@dataclass(frozen=True, slots=True)
class Unused:
    """One distribution to remove and why, as a sentence fragment."""

    name: str
    version: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Known:
    """What we know beside the installed metadata.

    `ever` are the names that any lock of a build names or named, `elsewhere` those of our other requirement files,
    `receipt` what an earlier run of ours put into this environment (versions by name), `marked` what an interrupted
    run was about to remove.
    """

    ever: frozenset[str]
    elsewhere: frozenset[str] = frozenset()
    receipt: Mapping[str, str] = field(default_factory=dict)
    marked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Need:
    """That the distribution `holder` requires something; `requirement` is its own words."""

    holder: str
    requirement: Requirement


def find_unused(
    held: Sequence[InstalledDistribution], planned: Collection[str], known: Known, environment: Mapping[str, str]
) -> tuple[Unused, ...]:
    """Return what to remove when the build whose lock names `planned` is to be the only one, in order of name.

    `environment` is the marker environment of the target. A build's own distribution under another name always goes,
    whatever requires it: it owns the folder that the planned one needs.
    """
    reasons = _candidates(held, frozenset(planned), known, environment)
    needs = needs_of_remaining(held, planned, reasons, known, environment)
    return tuple(
        Unused(found.name, found.version, reasons[found.name])
        for found in sorted(_first(held).values(), key=lambda found: found.name)
        if found.name in reasons and (found.is_build or found.name not in needs)
    )


def needs_of_remaining(
    held: Sequence[InstalledDistribution],
    planned: Collection[str],
    leaving: Collection[str],
    known: Known,
    environment: Mapping[str, str],
) -> dict[str, tuple[Need, ...]]:
    """Return, by name, what distributions that remain require, directly or through what they require.

    A build of ONNX Runtime is not followed, since it is replaced; neither are the planned libraries of NVIDIA, whose
    lock is complete.
    """
    ours = frozenset(name for name in planned if is_vendor(name))
    installed = _first(held)
    pending = [found for found in held if found.name not in leaving and not found.is_build and found.name not in ours]
    walk = _Walk(installed, known, environment)
    followed = {found.name for found in pending}
    while pending:
        for name in walk.follow(pending.pop()):
            if name in installed and name not in followed and not installed[name].is_build:
                followed.add(name)
                pending.append(installed[name])
            elif name in followed and walk.has_new_extras(name):
                pending.append(installed[name])
    return {name: tuple(needs) for name, needs in walk.needs.items()}


def left_out(
    coming: Sequence[InstalledDistribution], staying: Collection[str], environment: Mapping[str, str]
) -> tuple[Need, ...]:
    """Return what distributions that are installed require and will not have; `staying` are names that are there."""
    there = {*staying, *(found.name for found in coming)}
    return tuple(
        Need(found.name, requirement)
        for found in coming
        for requirement in parse_requirements(found.requires)
        if holds(requirement, environment) and normalize(requirement.name) not in there
    )


def satisfied(requirement: Requirement, version: str | None) -> bool:
    """Whether an installed version is one that a requirement accepts; an unreadable one is not."""
    try:
        return version is not None and requirement.specifier.contains(Version(version), prereleases=True)
    except ValueError:
        return False


def parse_requirements(lines: Iterable[str]) -> tuple[Requirement, ...]:
    """Return the requirements that can be read; a line that no tool understands asks for nothing."""
    found = []
    for line in lines:
        try:
            found.append(Requirement(line))
        except ValueError:
            # `InvalidRequirement`, and whatever an absurd version makes of it.
            continue
    return tuple(found)


def holds(requirement: Requirement, environment: Mapping[str, str], extra: str = "") -> bool:
    """Whether a requirement's marker holds in a target, with one extra asked for or none."""
    try:
        return requirement.marker is None or requirement.marker.evaluate({**environment, "extra": extra})
    except (ValueError, KeyError):
        # A marker that compares nonsense; whoever wrote it meant to require something.
        return True


def _candidates(
    held: Sequence[InstalledDistribution], planned: frozenset[str], known: Known, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return why each distribution could go, before asking who needs it."""
    stays = planned | known.elsewhere
    reached = _reached(held, planned, known, environment)
    reasons: dict[str, str] = {}
    for found in _first(held).values():
        if found.name in planned or (found.name in stays and not found.is_build):
            continue
        if found.origin != "wheel" and not found.is_build:
            continue
        ours = found.version is not None and known.receipt.get(found.name) == found.version
        if found.is_build:
            reasons[found.name] = "another build of ONNX Runtime, in the same folder"
        elif found.name in known.marked:
            reasons[found.name] = "an interrupted run was removing it"
        elif found.name in reached and (is_vendor(found.name) or ours):
            reasons[found.name] = reached[found.name]
    folders = {folder for name in reasons for folder in _first(held)[name].package_folders}
    for found in held:
        ours = found.version is not None and known.receipt.get(found.name) == found.version
        shared = sorted(folders & found.package_folders)
        if shared and ours and found.name not in stays and found.name not in reasons:
            reasons[found.name] = f"Imprint installed it into `{shared[0]}`, beside what is removed"
    return reasons


def _reached(
    held: Sequence[InstalledDistribution], planned: frozenset[str], known: Known, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return why each installed distribution belongs to some build, by name: roots, then what they require."""
    installed = _first(held)
    reached = {
        name: "a library of a build that is not planned"
        for name, found in installed.items()
        if name in known.ever or name in planned or found.is_build
    }
    pending = list(reached)
    while pending:
        found = installed[pending.pop()]
        extras = found.extras if found.is_build else ()
        for requirement in parse_requirements(found.requires):
            name = normalize(requirement.name)
            wanted = any(holds(requirement, environment, extra) for extra in ("", *extras))
            if wanted and name in installed and name not in reached:
                reached[name] = f"only {found.name} required it"
                pending.append(name)
    return reached


class _Walk:
    """Follows requirements of remaining distributions, with the extras that are asked for or evidently in use."""

    def __init__(
        self, installed: Mapping[str, InstalledDistribution], known: Known, environment: Mapping[str, str]
    ) -> None:
        self.needs: dict[str, list[Need]] = {}
        self._installed = installed
        self._known = known
        self._environment = environment
        self._asked: dict[str, set[str]] = {}
        self._followed: dict[str, set[str]] = {}

    def has_new_extras(self, name: str) -> bool:
        """Whether extras of `name` were asked for since it was followed."""
        return bool(self._asked.get(name, set()) - self._followed.get(name, set()))

    def follow(self, found: InstalledDistribution) -> list[str]:
        """Note what `found` requires and return the names."""
        requirements = parse_requirements(found.requires)
        extras = self._asked.get(found.name, set()) | self._in_use(found, requirements)
        self._followed.setdefault(found.name, set()).update(extras)
        names = []
        for requirement in requirements:
            if not any(holds(requirement, self._environment, extra) for extra in ("", *sorted(extras))):
                continue
            name = normalize(requirement.name)
            self._asked.setdefault(name, set()).update(normalize(extra) for extra in requirement.extras)
            known = self.needs.setdefault(name, [])
            if not any(need.holder == found.name and need.requirement == requirement for need in known):
                known.append(Need(found.name, requirement))
            names.append(name)
        return names

    def _in_use(self, found: InstalledDistribution, requirements: Sequence[Requirement]) -> set[str]:
        """Return the extras that someone must have asked for: all they require is there, and not through us.

        Metadata does not record which extras a person installed a package with.
        """
        used = set()
        for extra in found.extras:
            asked = [
                requirement
                for requirement in requirements
                if holds(requirement, self._environment, extra) and not holds(requirement, self._environment)
            ]
            if asked and all(self._is_theirs(requirement) for requirement in asked):
                used.add(extra)
        return used

    def _is_theirs(self, requirement: Requirement) -> bool:
        found = self._installed.get(normalize(requirement.name))
        if found is None or not satisfied(requirement, found.version):
            return False
        return self._known.receipt.get(found.name) != found.version


def _first(held: Sequence[InstalledDistribution]) -> dict[str, InstalledDistribution]:
    found: dict[str, InstalledDistribution] = {}
    for distribution in held:
        found.setdefault(distribution.name, distribution)
    return found
