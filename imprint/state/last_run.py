"""What the embedding worker truly ran on when it last started: `data/last_run.json`.

Written by whoever starts a worker, without the mutex: the file is replaced whole, and the last one to start is right.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from imprint import clock, touch
from imprint.errors import ImprintError
from imprint.paths import Home
from imprint.state import files
from imprint.state.findings import UNHEARD, Findings
from imprint.values import Document, fields_of, replace
from imprint.words import CPU_PROVIDER


class LastRun(Document):
    """One start. `asked` is cpu or gpu; `provider` the one that the session really had; `time` ISO 8601 UTC.

    `generation` names the target's generation and `model` the model that was loaded.
    """

    asked: str
    provider: str
    generation: str
    model: str
    time: str = ""

    @property
    def missed_the_gpu(self) -> bool:
        """Whether a GPU was asked for and the model ran on the CPU."""
        return self.asked == "gpu" and self.provider == CPU_PROVIDER


def path_of(home: Home) -> Path:
    """Return where it is written."""
    return home.data / "last_run.json"


def read(home: Home, findings: Findings = UNHEARD) -> LastRun | None:
    """Return the last start; None when there was none, or when its file is damaged or cannot be read.

    It is a note that every command can do without. Raises StateNewerError as `files.read_note` does.
    """
    value = files.read_note(path_of(home), within=home.root, findings=findings)
    if value is None:
        return None
    names = fields_of(LastRun)
    if not all(isinstance(value.get(name), str) for name in names):
        findings.damaged(path_of(home), "is not a record of a start")
        return None
    return LastRun(**{name: value[name] for name in names})


def note(home: Home, run: LastRun) -> None:
    """Write down a start that differs from the one before; a home that cannot be written is no reason to fail."""
    with contextlib.suppress(ImprintError):
        before = read(home)
        if before is not None and replace(before, time=run.time) == run:
            return
        files.write_json(path_of(home), replace(run, time=clock.now()).to_json(), within=home.root)


def forget(home: Home) -> None:
    """Remove the record: something newer is known. The caller holds the mutex."""
    touch.forget_file(path_of(home), within=home.root)
