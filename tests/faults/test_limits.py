"""Limits of the system and what it hides: each command ends with a reason, and none calls it a bug of Imprint's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from contracts.runner import Ran
from faults.test_homes import calm, errors_of, open_folder
from support.users import CLI, PATHS, SERVICE, give, make_home, python, why_not

pytestmark = pytest.mark.faults

COMMANDS = (
    ("status", "--json"),
    ("plan", "--device", "gpu", "--json"),
    ("devices", "--json"),
    ("machine", "--json"),
    ("check", "--json"),
    ("config", "set", "model.device", "gpu", "--json"),
    ("prune", "--json"),
    ("setup", "--offline", "--yes", "--json"),
    ("doctor", "--json"),
    ("embed", "text", "--json", "--output", "/dev/null"),
)
HIDDEN = ("unshare", "--mount", "--map-root-user", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
NONE, FEW_FILES = ("prlimit", "--nproc=1"), ("prlimit", "--nofile=7")
SURROUNDINGS = {
    "does not allow another process": NONE,
    "few processes": ("prlimit", "--nproc=4"),
    "few open files": FEW_FILES,
    "no proc": HIDDEN,
}


@pytest.fixture(scope="module", autouse=True)
def _another_user() -> None:
    if (why := why_not()) is not None:
        pytest.skip(why)


def run(prefix: tuple[str, ...], home: Path, words: tuple[str, ...]) -> Ran:
    if shutil.which(prefix[0]) is None:
        pytest.skip(f"{prefix[0]} is not there")
    return SERVICE.start([*prefix, python(), "-P", "-B", "-c", CLI, PATHS, *words], home)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("prefix", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_a_limit_is_named_and_is_no_bug(prefix: tuple[str, ...], words: tuple[str, ...]) -> None:
    with open_folder() as place:
        home = make_home(place / "home")
        give(home.root, SERVICE)
        ran = run(prefix, home.root, words)
        if prefix == HIDDEN and "unshare" in ran.err:
            pytest.skip(ran.err)
        calm(ran)
        if words[0] in {"embed", "prune", "setup"} and prefix in {NONE, FEW_FILES}:
            assert errors_of(ran)[0]["code"] == ("process-limit" if prefix == NONE else "open-files-limit"), ran
