"""Where Imprint keeps its state: every path under IMPRINT_HOME, computed with the standard library alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from imprint import envvars
from imprint.errors import UsageError
from imprint.hints import helps
from imprint.values import Record


class Home(Record):
    """The folder that holds all state and caches of Imprint, and what lies where in it."""

    root: Path

    @property
    def marker(self) -> Path:
        """The file that marks the folder as ours; `ownership` says what it proves."""
        return self.root / ".imprint-home"

    @property
    def config(self) -> Path:
        """The configuration a person edits (TOML)."""
        return self.root / "config.toml"

    @property
    def secrets(self) -> Path:
        """The configuration that nobody else may read (TOML, mode 0600)."""
        return self.root / "secrets.toml"

    @property
    def data(self) -> Path:
        """The folder of state files written by Imprint alone."""
        return self.root / "data"

    @property
    def verdicts(self) -> Path:
        """Recorded check verdicts (JSON)."""
        return self.data / "gpu_state.json"

    @property
    def current(self) -> Path:
        """The pointer to the current generation (JSON)."""
        return self.data / "current.json"

    @property
    def logs(self) -> Path:
        """The folder of logs, one file for each failed run."""
        return self.data / "logs"

    @property
    def runtimes(self) -> Path:
        """The folder of generations of the managed target, one folder each."""
        return self.root / "runtimes"

    @property
    def models(self) -> Path:
        """The folder of installed models."""
        return self.root / "models"

    @property
    def seen_models(self) -> Path:
        """The note on what the files of models were when their content was last found right."""
        return self.data / "models.json"

    @property
    def cache(self) -> Path:
        """UV_CACHE_DIR; on the same file system as the generations, so that hard links work."""
        return self.root / ".uv-cache"

    @property
    def tool(self) -> Path:
        """The folder of the launcher's own environment."""
        return self.root / "tool"

    @property
    def mutex(self) -> Path:
        """The file whose lock guards every change."""
        return self.root / "setup.lock"


def is_absent(path: Path) -> bool:
    """Whether there is certainly nothing at a path: what the system hides from us may be there."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def find_home(environ: Mapping[str, str], platform: str = sys.platform) -> Home:
    """Return the home that IMPRINT_HOME names, else the folder platformdirs' `user_data_dir("imprint", False)` gives.

    Raises UsageError when IMPRINT_HOME is set to a relative path, the path is not UTF-8, or no home folder is known.
    Nothing is created.
    """
    given = environ.get(envvars.HOME, "")
    if given:
        root = Path(given).expanduser()
        if not root.is_absolute():
            raise UsageError(
                f"{envvars.HOME} is a relative path: {given}",
                hint=helps("absolute-home"),
            )
        return Home(require_utf8(root))
    if platform == "win32":
        base = environ.get("LOCALAPPDATA") or _user_folder(environ, "AppData/Local")
    elif platform == "darwin":
        base = _user_folder(environ, "Library/Application Support")
    else:
        given = environ.get("XDG_DATA_HOME", "").strip()
        base = given if given and os.path.isabs(given) else _user_folder(environ, ".local/share")  # noqa: PTH117
    return Home(require_utf8(Path(base) / "imprint"))


def require_utf8(root: Path) -> Path:
    """Return the path of a home. Raises UsageError for one that is not UTF-8: uv and ONNX Runtime take no other."""
    if (shown := not_utf8(root)) is not None:
        raise UsageError(f"the path of Imprint's home is not valid UTF-8: {shown}", hint=helps("utf8-home"))
    return root


def not_utf8(path: Path) -> str | None:
    """Return how a path is shown whose bytes are not UTF-8, whatever the locale; None for every other."""
    name = os.fsencode(path)
    try:
        name.decode()
    except UnicodeDecodeError:
        return name.decode(errors="backslashreplace")
    return None


def _user_folder(environ: Mapping[str, str], relative: str) -> str:
    home = environ.get("HOME") or environ.get("USERPROFILE") or os.path.expanduser("~")  # noqa: PTH111
    if not os.path.isabs(home):  # noqa: PTH117
        raise UsageError(
            "no home folder is known for this user",
            hint=helps("some-home"),
        )
    return str(Path(home) / relative)
