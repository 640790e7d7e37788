"""Which environments of somebody else's are refused because of the Python they say they have."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from imprint.context import Context
from imprint.errors import ImprintError, UsageError
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.paths import Home
from imprint.probing.host import OUTPUT_LIMIT, ChildResult
from imprint.probing.this_machine import RealHost
from imprint.runtime.foreign.environment import look_at


class Saying(RealHost):
    """This machine, but with an interpreter that says what the test wants."""

    def __init__(self, version: str, implementation: str = "cpython") -> None:
        super().__init__({})
        self.said = {"version": version, "implementation": implementation, "machine": "x86_64"}

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline: float,
        environ: Mapping[str, str] | None = None,
        limit: int = OUTPUT_LIMIT,
    ) -> ChildResult:
        """Answer without a child."""
        del argv, deadline, environ, limit
        return ChildResult(0, json.dumps(self.said))


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    made = tmp_path / "env"
    (made / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    (made / "bin").mkdir()
    (made / "bin" / "python").symlink_to(sys.executable)
    (made / "pyvenv.cfg").write_text("home = /nowhere\n")
    return made


def code(prefix: Path, host: Saying) -> str:
    with pytest.raises(ImprintError) as caught:
        look_at(prefix, Home(prefix.parent / "home"), host)
    return caught.value.specific_code


def test_a_supported_python_is_described_for_markers(prefix: Path) -> None:
    found = look_at(prefix, Home(prefix.parent / "home"), Saying("3.12.4"))
    assert found.packages == prefix / "lib" / "python3.12" / "site-packages"
    assert found.markers["python_full_version"] == "3.12.4"
    assert found.markers["python_version"] == "3.12"


@pytest.mark.parametrize(
    ("version", "implementation"), [("3.9.18", "cpython"), ("3.15.0a1", "cpython"), ("3.12.4", "pypy")]
)
def test_a_python_without_wheels_is_refused(prefix: Path, version: str, implementation: str) -> None:
    assert code(prefix, Saying(version, implementation)) == "python-unsupported"


def test_an_environment_whose_python_was_replaced_is_refused(prefix: Path) -> None:
    assert code(prefix, Saying("3.13.1")) == "interpreter-changed"


def test_an_interpreter_that_says_nothing_is_refused(prefix: Path) -> None:
    host = Saying("3.12.4")
    host.said = {}
    assert code(prefix, host) == "interpreter-unusable"


def test_a_path_that_is_not_utf8_is_refused_by_name(prefix: Path) -> None:
    """By all that look at an environment before they use it, and by doctor."""
    odd, home = prefix.rename(os.fsdecode(os.fsencode(prefix) + b"\xff")), Home(prefix.parent / "home")
    with pytest.raises(UsageError, match=r"not valid UTF-8: .*/env\\xff"):
        look_at(odd, home, Saying("3.12.4"))
    with pytest.raises(UsageError, match="not valid UTF-8"):
        diagnose(Context(home, {}, {}), DoctorOptions(venv=odd))
