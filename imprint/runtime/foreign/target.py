"""Somebody's own environment as a target: what its files say they are. Reads; only its interpreter is started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from imprint.errors import ImprintError
from imprint.paths import Home
from imprint.planning.builds import CPU, CUDA, Build, BuildTable
from imprint.probing.this_machine import RealHost
from imprint.runtime.distributions import inventory
from imprint.runtime.foreign import journal
from imprint.runtime.foreign.environment import look_at
from imprint.runtime.target import Target, interpreter_of
from imprint.state.findings import UNHEARD, Findings


def find_environment(
    venv: Path, home: Home, environ: Mapping[str, str], builds: BuildTable, findings: Findings = UNHEARD
) -> Target:
    """Return the environment at `venv` with the build of `builds` that its files are.

    Raises ImprintError with the reason when it is no environment that can be used, as `look_at` does.
    """
    prefix = venv.expanduser().absolute()
    try:
        look_at(prefix, home, RealHost(environ))
    except ImprintError as error:
        # It cannot be changed, but it can be used.
        if error.specific_code != "environment-read-only":
            raise
    return environment_target(home, prefix, builds, findings)


def environment_target(home: Home, prefix: Path, builds: BuildTable, findings: Findings = UNHEARD) -> Target:
    """Return somebody's own environment as a target: the build its files say they are, and since when it is there."""
    seen = inventory.inspect(prefix).runtime
    receipt = journal.read_receipt(journal.store_of(home, prefix), findings)
    version = seen.version if seen is not None else None
    build = build_of(builds, seen.package, version) if seen is not None else None
    ours = receipt is not None and receipt.version == version
    return Target(
        prefix=prefix,
        python=interpreter_of(prefix),
        managed=False,
        build=build.name if build is not None else None,
        version=version,
        since=receipt.since if receipt is not None and ours else None,
    )


def build_of(builds: BuildTable, package: str | None, version: str | None) -> Build | None:
    """Return the build that a distribution of ONNX Runtime is, None when the table has none such."""
    kinds = {"onnxruntime": CPU, "onnxruntime-gpu": CUDA}
    for build in builds.builds:
        if build.kind == kinds.get(package or "") and any(wheel.version == version for wheel in build.wheels):
            return build
    return None
