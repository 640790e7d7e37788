"""A home of its own with twin wheels, and the whole setup on a machine with a GPU that is only described."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from imprint.context import Context
from imprint.embedding.catalogue import load_catalogue
from imprint.embedding.models import folder_of
from imprint.operations.setup import Seams, SetupOptions, setup
from imprint.paths import Home
from imprint.planning.model import Device, Gpu, Libc, Machine, Nvidia, Platform, Python
from imprint.probing.survey import survey
from imprint.probing.this_machine import RealHost
from imprint.results import Result
from imprint.runtime.check.run import CheckResult
from imprint.runtime.events import Event
from imprint.runtime.managed.recipe import own_python
from imprint.runtime.target import current_target
from imprint.state.files import raise_for_write
from support.twins import Twins, loaded, twin_check

GPU = Gpu(0, "GPU-11111111-2222-3333-4444-555555555555", "NVIDIA L4", "8.9", 24000, 23000, False, False, "0000:01:00.0")
MACHINE = Machine(
    platform=Platform("linux", "x86_64", Libc("glibc", "2.36"), "12", False, False, False),
    python=Python(own_python(), None),
    nvidia=Nvidia("ok", "580.95.05", "580.95.05", "13.0", "/usr/lib/libcuda.so.1", None, (GPU,)),
    other_gpus=(),
    environment={},
)


def machine_like_this() -> Machine:
    """Return the document of a machine like this one, with a GPU."""
    return replace(MACHINE, platform=survey(RealHost(), hardware=False).platform)


def no_model(home: Home, name: str, **_: object) -> None:
    """Stand for a model that is there: files of the right names and sizes, with nothing in them."""
    folder = folder_of(home, name)
    if folder.exists():
        return
    try:
        folder.mkdir(parents=True)
        for file in load_catalogue().model(name).files:
            with (folder / file.name).open("wb") as made:
                made.truncate(file.size)
    except OSError as error:
        raise_for_write(home.models, error)


class Place:
    """A home, twin wheels, and a setup that uses them."""

    def __init__(self, root: Path, twins: Twins) -> None:
        self.home = Home(root)
        self.twins = twins
        self.events: list[Event] = []
        self.checks: list[Device | None] = []
        self.check: Callable[[Path, Device | None, Mapping[str, str]], CheckResult] = twin_check
        self.machine = MACHINE
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))
        }
        self.context = Context(self.home, environ)

    def setup(self, device: str = "cpu", **options: Any) -> Result[Any]:  # noqa: ANN401 - SetupOptions checks them
        """Run setup from the twin wheels alone; `options` are fields of SetupOptions."""
        defaults: dict[str, Any] = {"offline": True, "find_links": self.twins.wheels, "wait_seconds": 0}
        context = replace(self.context, flags={"model.device": device})

        def check(python: Path, planned: Device | None, environ: Mapping[str, str]) -> CheckResult:
            self.checks.append(planned)
            return self.check(python, planned, environ)

        seams = Seams(machine=self.machine, check=check, lock_path=self.twins.lock_path, install_model=no_model)
        return setup(context, SetupOptions(**(defaults | options)), self.events.append, seams=seams)

    @property
    def prefix(self) -> Path:
        """The current generation's folder."""
        target = current_target(self.home)
        assert target is not None
        return target.prefix

    def runs(self) -> str:
        """Return what the current generation really loads."""
        return loaded(self.prefix / "bin" / "python")
