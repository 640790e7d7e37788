"""What a setup downloads at most, in bytes: one sum for the plan, the dry run and the question, and what it counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from imprint.context import Context
from imprint.planning.builds import Wheel
from imprint.planning.gates import wheel_for
from imprint.planning.model import Plan
from imprint.runtime.distributions.embedding_needs import BASE_DOWNLOAD, BASE_INSTALLED, BASE_LOCK
from imprint.situation.inputs import Inputs
from imprint.situation.verdict import model_problem
from imprint.state import config
from imprint.values import Record


class Download(Record):
    """Bytes that come over the network: the build with its libraries, the packages for embedding, the model.

    None is unknown, 0 what is there already; `on_disk` is what build and packages take once they are unpacked.
    """

    build: int | None
    packages: int
    model: int
    total: int | None
    on_disk: int | None

    @classmethod
    def of(cls, build: int | None, packages: int, model: int, on_disk: int | None) -> Download:
        """Return it with the sum."""
        return cls(build, packages, model, None if build is None else build + packages + model, on_disk)


def download_into(
    context: Context, inputs: Inputs, install: Iterable[str], base: Iterable[str], kept: Collection[str] = ()
) -> Download:
    """Return what is fetched for the distributions `install`, of which those in `base` are packages for embedding.

    `kept` are distributions of the build that the cache holds for another try. The run that left them there fetched
    the packages for embedding too.
    """
    names, known = set(install), set(base)
    build, on_disk = sizes_of(inputs) if names - known else (0, 0)
    packages = BASE_DOWNLOAD if names & known else 0
    unpacked = BASE_INSTALLED if packages else 0
    if names - known and names - known <= set(kept):
        build = packages = 0
    return Download.of(build, packages, model_download(context), None if on_disk is None else on_disk + unpacked)


def download_for(context: Context, plan: Plan, *, here: bool, venv: Path | None = None) -> Download:
    """Return what setup fetches for a plan; the model too, unless it is `here` already.

    Packages for embedding that somebody's environment `venv` holds stay, in whatever version.
    """
    build, on_disk = plan.download_bytes, plan.installed_bytes
    packages = 0 if venv is not None and _has_all(venv) else BASE_DOWNLOAD
    unpacked = BASE_INSTALLED if packages else 0
    return Download.of(
        build, packages, model_download(context, here=here), None if on_disk is None else on_disk + unpacked
    )


def _has_all(venv: Path) -> bool:
    from imprint import resources
    from imprint.runtime.distributions import inventory
    from imprint.runtime.distributions.pins import pins_of

    return set(pins_of([resources.lock_path(BASE_LOCK)])) <= inventory.inspect(venv).versions.keys()


def model_download(context: Context, *, here: bool = True) -> int:
    """Return the bytes of the configured model, 0 for one that is here already or that nobody knows."""
    if here and model_problem(context) is None:
        return 0
    from imprint.embedding.catalogue import load_catalogue

    name = config.load(context.home, context.environ, context.flags).text("model.name")
    model = load_catalogue().models.get(name)
    return 0 if model is None else model.download.size


def sizes_of(inputs: Inputs) -> tuple[int | None, int | None]:
    """Return the bytes that the planned build takes to download and installed, whatever is there already."""
    plan = inputs.plan
    build = inputs.builds.find(plan.build)
    wheel = wheel_for(build, inputs.machine) if build is not None else None
    if isinstance(wheel, Wheel) and wheel.version == plan.version:
        return wheel.download_bytes, wheel.installed_bytes
    return None, None
