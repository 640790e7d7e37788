"""Says which file makes a Python print before any program runs, where the installer cannot read the answer for that."""

from __future__ import annotations

import re
from pathlib import Path

from imprint.causes.errors import error_of
from imprint.errors import ImprintError
from imprint.runtime.distributions.inventory import packages_folder
from imprint.runtime.distributions.records import read_text

_ASKED = r"Querying Python at `(?P<python>[^`]+)` returned an invalid response"
_PRINTED = r"\[stdout\]\s*\n\s*(?P<line>[^\n{][^\n]*)"
_LINE = r"import[ \t]+(?P<module>\w*)"
"""A line of a `.pth` that runs, as Python tells it: such a line begins with import."""

_SHOWN = 60
"""Characters of what it prints that are shown."""

_STARTUP = ("sitecustomize.py", "usercustomize.py", "*.pth")
"""What Python runs at every start, from the folder of packages; a `.pth` only for its lines that begin with import."""


def startup_error(text: str) -> ImprintError | None:
    """Return the error that uv's words amount to when an interpreter mixed its answer with other output; else None."""
    asked = re.search(_ASKED, text)
    if asked is None:
        return None
    python = asked["python"]
    printed = re.search(_PRINTED, text)
    said = f" `{' '.join(printed['line'].split())[:_SHOWN]}`" if printed else ""
    files = files_run_at_start(Path(python).parent.parent)
    by = f" (`{'`, `'.join(map(str, files))}` {'is' if len(files) == 1 else 'are'} run at every start)" if files else ""
    message = f"`{python}` prints{said} before it runs anything, so the installer cannot identify it{by}"
    return error_of("python-path-interferes", message, **({"file": str(files[0])} if files else {}))


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
    lines = (read_text(path) or "").splitlines()
    return any(re.match(_LINE, line) and (_says(line) or _module_says(path.parent, line)) for line in lines)


def _says(code: str) -> bool:
    return "print" in code or "stdout" in code


def _module_says(packages: Path, line: str) -> bool:
    """Whether a module of the folder that the line imports first writes something itself."""
    found = re.match(_LINE, line)
    name = found["module"] if found else ""
    module = read_text(packages / f"{name}.py")
    return _says((read_text(packages / name / "__init__.py") or "") if module is None else module)
