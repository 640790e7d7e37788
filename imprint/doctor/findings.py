"""What doctor can say: a finding, and the table of every finding code with what it means and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

OK = "ok"
WARNING = "warning"
ERROR = "error"
SKIPPED = "skipped"
STATUSES = (OK, WARNING, ERROR, SKIPPED)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    `seen` is the fact, `means` what follows from it, `runs_on` (cpu, gpu, none) what embeddings run on now, `fix` the
    command or change that mends it, None where there is nothing to mend.
    """

    id: str
    code: str
    status: str
    seen: str
    means: str
    runs_on: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The general meaning of a finding code; a finding itself has the particulars."""

    means: str
    fix: str | None


CODES: dict[str, Explanation] = {
    "ok": Explanation("the check found nothing wrong", None),
    "ok-cpu": Explanation("embeddings run on the CPU, as was asked or as this machine allows", None),
    "ok-gpu": Explanation("embeddings run on the GPU that was planned", None),
    "skipped": Explanation("the check needs a fact that is not there; the finding says which", None),
    "check-crashed": Explanation(
        "the check itself failed, which is a bug in Imprint; the other checks are not affected",
        "run `imprint doctor --report` and report what it prints",
    ),
    "home-not-writable": Explanation(
        "Imprint cannot write where it keeps its files, so nothing can be set up or changed",
        "make the folder writable for you, or set IMPRINT_HOME to one that is",
    ),
    "state-set-aside": Explanation(
        "a state file was damaged; it was renamed and counts as missing, nothing else was touched",
        "`imprint setup` writes it anew; delete the renamed file when you do not need it",
    ),
    "state-newer": Explanation(
        "a newer Imprint wrote a state file; this one leaves it alone and cannot work with it",
        "use the newer Imprint, or set IMPRINT_HOME to another folder",
    ),
    "state-unreadable": Explanation(
        "a state file cannot be read and could not be set aside",
        "check its permissions, or move it away by hand",
    ),
    "config-unreadable": Explanation(
        "the configuration file is not valid, so no command that needs it runs",
        "mend the line that is named; `imprint config path` prints where the file is",
    ),
    "config-invalid": Explanation(
        "the configuration names a key or a value that does not exist",
        "`imprint config set KEY VALUE` or `imprint config unset KEY`",
    ),
    "environment-invalid": Explanation(
        "an environment variable holds a value that is not valid, or two of them contradict each other",
        "correct or unset the variable that is named",
    ),
    "unknown-variable": Explanation(
        "an environment variable begins with IMPRINT_ and means nothing; it is most likely misspelt and has no effect",
        "correct its name or unset it",
    ),
    "not-installed": Explanation("no runtime was set up yet, so nothing can be embedded", "`imprint setup`"),
    "interpreter-gone": Explanation(
        "the Python that the runtime was made with is gone or does not start; the runtime cannot be used",
        "`imprint setup` makes a new one",
    ),
    "install-incomplete": Explanation(
        "files that a package lists are missing or have another size: an installation was cut short or changed",
        "`imprint setup --repair`",
    ),
    "runtime-hollow": Explanation(
        "ONNX Runtime is listed as installed but its files are gone; importing it gives an empty module",
        "`imprint setup --repair`",
    ),
    "metadata-damaged": Explanation(
        "a package's own records (RECORD, METADATA) are missing, so it cannot be removed or checked",
        "`imprint setup --repair`",
    ),
    "duplicate-runtimes": Explanation(
        "two builds of ONNX Runtime are installed over the same folder; which one loads depends on their order",
        "`imprint setup --repair`",
    ),
    "change-pending": Explanation(
        "what is installed differs from what the configuration and this machine call for",
        "`imprint setup`",
    ),
    "gpu-unavailable": Explanation(
        "a GPU was asked for and cannot be used here, so the CPU is planned",
        "none is known; `imprint config set model.device cpu` if the CPU is what you want",
    ),
    "no-build": Explanation("no build of ONNX Runtime exists for this machine", None),
    "model-missing": Explanation("the configured model is not on disk", "`imprint setup` installs it"),
    "model-damaged": Explanation("files of the configured model are missing or damaged", "`imprint setup --repair`"),
    "disk-low": Explanation(
        "the disk that holds Imprint's files is nearly full; the next change of the runtime may not fit",
        "free some space there",
    ),
}
"""Every code a finding can have."""
