"""What another try of a GPU build costs whose check failed, and whether the cache keeps what that would download."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from imprint.context import Context
from imprint.hints import helps
from imprint.planning.builds import Wheel
from imprint.planning.gates import wheel_for
from imprint.planning.rule import asks_for_gpu
from imprint.runtime.distributions.embedding_needs import BASE_DOWNLOAD
from imprint.runtime.installer import space
from imprint.runtime.managed import deferred
from imprint.situation.inputs import Inputs
from imprint.situation.targets import command_of
from imprint.sizes import in_units

KEEP_FREE = 5 * 10**9
"""Bytes. What a retry would download is kept while at least this much of the disk stays free."""


def keep_for_retry(context: Context, inputs: Inputs, names: Iterable[str]) -> None:
    """Keep what was fetched for a build whose check failed, where a GPU is asked for and the disk has room."""
    free = space.free_at(context.home.root)
    if asks_for_gpu(inputs.request) and free is not None and free >= KEEP_FREE:
        deferred.keep(context.home, names)


def kept_for(context: Context, inputs: Inputs) -> frozenset[str]:
    """Return what the cache keeps of the planned build, as its lock is now, since its check failed."""
    build = inputs.builds.find(inputs.plan.build or "")
    wheel = wheel_for(build, inputs.machine) if build is not None else None
    lock = wheel.lock_digest if isinstance(wheel, Wheel) else None
    failed = [one for one in inputs.verdicts if one.result == "failed" and one.build == inputs.plan.build]
    if lock is None or all(one.fingerprint.lock != lock for one in failed):
        return frozenset()
    return deferred.read_only(context.home).kept


def release_unless_wanted(context: Context, inputs: Inputs) -> None:
    """Let what is kept for another try go once nobody asks for a GPU."""
    if not asks_for_gpu(inputs.request):
        deferred.release(context.home)


def retry_hint(context: Context, inputs: Inputs, build: str | None, venv: Path | None) -> str:
    """Return how to try the GPU build again and what that downloads."""
    setup, size = command_of("setup", venv), _download(inputs, build)
    if deferred.read_only(context.home).kept:
        return helps("retry-gpu-kept", setup=setup)
    if size is None:
        return helps("retry-gpu-again", setup=setup)
    return helps("retry-gpu-download", setup=setup, size=in_units(size))


def failed_build(inputs: Inputs) -> str | None:
    """Return the GPU build that a recorded failed check keeps from being planned, None when there is none."""
    if inputs.plan.code != "check-failed":
        return None
    return next((refused.build for refused in inputs.plan.refused if refused.code == "check-failed"), None)


def _download(inputs: Inputs, name: str | None) -> int | None:
    build = inputs.builds.find(name or "")
    wheel = wheel_for(build, inputs.machine) if build is not None else None
    if not isinstance(wheel, Wheel) or wheel.download_bytes is None:
        return None
    return wheel.download_bytes + BASE_DOWNLOAD
