"""Gathers what lies in the home, the space around it, and what somebody asked for."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from imprint import envvars
from imprint.access import owner_of
from imprint.context import Context
from imprint.diagnosis.facts import Disk, HomeFacts, SettingsFacts, Unused
from imprint.diagnosis.gathering.sources import TRY_SECONDS, Look
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.paths import Home
from imprint.planning.model import Plan
from imprint.runtime.installer import space
from imprint.situation.homes import nearest
from imprint.state import settings
from imprint.state.config import Config


def settings_facts(environ: Mapping[str, str], configured: Config | None) -> SettingsFacts:
    """Return what was asked for, by the configuration (None: it cannot be read) and in the environment."""
    device = configured.get("model.device") if configured is not None else None
    return SettingsFacts(
        environ=environ,
        unknown_variables=tuple(settings.unknown_variables(environ)),
        device_asked=configured.device if configured is not None else None,
        device_set=device is not None and device.origin != "default",
        declared_gb=_number(environ.get(envvars.VRAM_GB)),
        exposed=configured.exposed if configured is not None else (),
    )


def home_facts(look: Look, configured: Config | None, plan: Plan | None) -> Callable[[], HomeFacts]:
    """Look at the home, at the configured model in it, and at the disk."""
    ask, home = look.sources.ask, look.context.home
    needed = plan.installed_bytes if plan is not None and plan.pending else None
    name = configured.text("model.name") if configured is not None else None
    model = ask("model", (lambda: _model(look.context, name, deep=look.deep)) if name else None, TRY_SECONDS)
    useless = ask("unused", (lambda: unused(home)) if "unused" in look.slow else None, TRY_SECONDS)
    place, linked = ask("blocked", lambda: blocked(home)), ask("copies", lambda: copies(home))
    free = ask("disk", lambda: disk(home, needed))

    def facts() -> HomeFacts:
        return HomeFacts(
            path=str(home.root),
            error=told_of(place()),
            foreign=is_foreign(place()),
            model=model(),
            disk=free(),
            unused=useless(),
            copies=linked(),
            asides=tuple(look.findings),
        )

    return facts


def _model(context: Context, name: str, *, deep: bool) -> str:
    from imprint.embedding.catalogue import load_catalogue
    from imprint.embedding.models import flaws, model_files

    model_files(context.home, name)
    wrong = flaws(context.home, load_catalogue().model(name), deep=True) if deep else []
    if wrong:
        raise ImprintError(f"the model {name} is damaged: {wrong[0]}", hint=helps("repair-here"), code="model-damaged")
    return name


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def blocked(home: Home) -> Path | None:
    """Return what this user cannot write where Imprint keeps its files, the first of a few that tell; None when it can.

    After one run with `sudo` the folder itself is ours, and what was made in it is not.
    """
    place = nearest(home.root)
    if place != home.root:
        return None if os.access(place, os.W_OK | os.X_OK) else place
    folders = [home.root, home.data, home.runtimes, *_inside(home.runtimes), home.models, home.cache, home.tool]
    for folder in folders:
        if os.path.lexists(folder) and not os.access(folder, os.W_OK | os.X_OK):
            return folder
    files = (home.config, home.mutex, *_inside(home.data))
    return next((path for path in files if os.path.lexists(path) and not os.access(path, os.R_OK | os.W_OK)), None)


def told_of(place: Path | None) -> str | None:
    """Return what to say of a place that cannot be written."""
    if place is None:
        return None
    return f"`{place}` cannot be written" + (f"; it belongs to {owner_of(place.lstat())}" if is_foreign(place) else "")


def is_foreign(place: Path | None) -> bool:
    """Whether a place belongs to another user."""
    try:
        return place is not None and hasattr(os, "geteuid") and place.lstat().st_uid != os.geteuid()
    except OSError:
        return False


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def disk(home: Home, needed: int | None) -> Disk | None:
    """Return the free space where the home lies or will lie."""
    place = nearest(home.root)
    free = space.free_at(place)
    return Disk(free, needed, str(place)) if free is not None else None


def unused(home: Home) -> Unused:
    """Return the bytes in the home that pruning would free. Walks the old generations and the cache."""
    # Only this one of many checks needs what reads locks.
    from imprint.runtime import prune
    from imprint.runtime.distributions.shipped import read_shipped

    found = prune.freeable(home, known=read_shipped().ever)
    return Unused(found.generations, found.cache, found.kept)


def copies(home: Home) -> bool:
    """Return whether the cache and the runtimes lie on different file systems."""
    return nearest(home.cache).stat().st_dev != nearest(home.runtimes).stat().st_dev
