"""Says which file makes a Python print before any program runs, where the installer cannot read the answer for that."""

from __future__ import annotations

import re
from pathlib import Path

from imprint.causes.errors import error_of
from imprint.errors import ImprintError
from imprint.runtime.distributions.inventory import packages_folder

_ASKED = re.compile(r"Querying Python at `(?P<python>[^`]+)` returned an invalid response")
_PRINTED = re.compile(r"\[stdout\]\s*\n\s*(?P<line>[^\n{][^\n]*)")
_SHOWN = 60
"""Characters of what it prints that are shown."""

_STARTUP = ("sitecustomize.py", "usercustomize.py", "*.pth")
"""What Python runs at every start, from the folder of packages; a `.pth` only for its lines that begin with import."""


def startup_error(text: str) -> ImprintError | None:
    """Return the error that uv's words amount to when an interpreter mixed its answer with other output; else None."""
    asked = _ASKED.search(text)
    if asked is None:
        return None
    python = asked["python"]
    printed = _PRINTED.search(text)
    said = f" `{' '.join(printed['line'].split())[:_SHOWN]}`" if printed else ""
    files = files_run_at_start(Path(python).parent.parent)
    by = f" (`{'`, `'.join(map(str, files))}` {'is' if len(files) == 1 else 'are'} run at every start)" if files else ""
    message = f"`{python}` prints{said} before it runs anything, so the installer cannot identify it{by}"
    return error_of("python-path-interferes", message)


def files_run_at_start(prefix: Path) -> list[Path]:
    """Return the files of an environment that its Python runs at every start, those that people write first."""
    packages = packages_folder(prefix)
    if packages is None:
        return []
    found = [path for pattern in _STARTUP for path in sorted(packages.glob(pattern)) if _prints(path)]
    written = [path for path in found if path.suffix == ".py"]
    return written or found


def _prints(path: Path) -> bool:
    """Whether a file may print: any module, and a `.pth` that holds code which does."""
    if path.suffix == ".py":
        return True
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return any(line.startswith(("import ", "import\t")) and ("print" in line or "stdout" in line) for line in lines)
