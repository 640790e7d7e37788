"""What a plan would change on a target: whether anything, and how many bytes that moves."""

from __future__ import annotations

from imprint.planning.builds import BuildTable, Wheel
from imprint.planning.gates import wheel_for
from imprint.planning.model import Installed, Machine, Plan
from imprint.values import replace


def settled(plan: Plan, machine: Machine, builds: BuildTable, installed: Installed | None) -> Plan:
    """Return the plan with what is installed, whether a change is pending, and its sizes in bytes.

    An installed build of unknown version counts as the planned one. Sizes are 0 when nothing is to change, and None
    where the table does not know them.
    """
    same = installed is not None and installed.build == plan.build and installed.version in {None, plan.version}
    pending = plan.build is not None and not same
    if not pending:
        return replace(
            plan, installed=installed, pending=False, download_bytes=0, installed_bytes=0, free_bytes_after_prune=0
        )
    wanted = _wheel(plan.build, plan.version, machine, builds)
    needed = None if wanted is None else wanted.installed_bytes
    return replace(
        plan,
        installed=installed,
        pending=True,
        download_bytes=None if wanted is None else wanted.download_bytes,
        installed_bytes=needed,
        free_bytes_after_prune=_freed(needed, machine, builds, installed),
    )


def _freed(needed: int | None, machine: Machine, builds: BuildTable, installed: Installed | None) -> int | None:
    """Return what is left over once the planned build has replaced the installed one."""
    if installed is None:
        return 0
    # What is on the disk takes its space whether or not it would be planned for a Tegra GPU.
    anywhere = replace(machine, platform=replace(machine.platform, jetson=None))
    there = _wheel(installed.build, installed.version, anywhere, builds)
    held = None if there is None else there.installed_bytes
    return None if held is None or needed is None else max(0, held - needed)


def _wheel(name: str | None, version: str | None, machine: Machine, builds: BuildTable) -> Wheel | None:
    build = builds.find(name) if name is not None else None
    wheel = wheel_for(build, machine) if build is not None else None
    return wheel if isinstance(wheel, Wheel) and version in {None, wheel.version} else None
