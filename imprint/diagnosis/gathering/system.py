"""Gathers what this machine is, and this process on it."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from imprint.causes.circumstances import here
from imprint.context import Context
from imprint.diagnosis.facts import Nodes, SystemFacts
from imprint.diagnosis.gathering.sources import Look
from imprint.errors import ImprintError
from imprint.planning.model import Machine
from imprint.probing.host import Host
from imprint.probing.survey import survey
from imprint.runtime.target import Target

MACHINE_SECONDS = 50.0
"""For the survey: its own limits for a driver that hangs are 10 and 30 seconds."""

_NODES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-caps/*", "dxg", "kfd", "dri/renderD*")


def system_facts(look: Look, target: Target | None) -> Callable[[], SystemFacts]:
    """Look at the machine, as the target's interpreter sees it where that answers."""
    foreign = target if target is not None and not target.managed else None
    ask = look.sources.ask
    machine = ask("machine", lambda: _machine(look.host, foreign), MACHINE_SECONDS)
    found, uv = ask("nodes", nodes), ask("uv", lambda: _uv(look.context))
    proc = sys.platform != "linux" or Path("/proc/self/stat").exists()
    return lambda: SystemFacts(machine(), found(), proc, here(look.context.environ), uv() or "uv")


def _machine(host: Host, foreign: Target | None) -> Machine:
    if foreign is not None:
        with contextlib.suppress(ImprintError):
            return survey(host, python=foreign.python)
    return survey(host)


def nodes() -> Nodes:
    """Return the device nodes of GPUs, and those that this process may not open. Nothing is opened."""
    root = Path("/dev")
    present = [str(path) for pattern in _NODES for path in sorted(root.glob(pattern))]
    return Nodes(tuple(present), tuple(path for path in present if not os.access(path, os.R_OK | os.W_OK)))


def _uv(context: Context) -> str:
    """Return the word that starts uv there: a person may not have it on the path, and then ours is meant."""
    from imprint.runtime.installer.uv import find_uv

    on_path = shutil.which("uv", path=context.environ.get("PATH"))
    return "uv" if on_path else str(find_uv(context.home, context.environ).executable)
