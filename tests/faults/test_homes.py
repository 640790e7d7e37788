"""Every command on homes that this user may not read, or not write, or that others share.

Nothing is harmed, and what is printed as a remedy mends it. What the same command does in a healthy home of its own is
the measure.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.runner import Ran
from imprint.paths import Home
from support.sandbox import run_in
from support.users import GENERATION, OWNER, ROOT_USER, SERVICE, SHARERS, User, give, make_home, python, seen, why_not

pytestmark = pytest.mark.faults

Words = tuple[str, ...]

READERS: tuple[Words, ...] = (
    ("status", "--json"),
    ("plan", "--json"),
    ("plan", "--check", "--json"),
    ("devices", "--json"),
    ("machine", "--json"),
    ("config", "list", "--json"),
    ("config", "get", "model.max_tokens", "--json"),
    ("config", "path", "--json"),
    ("model", "list", "--json"),
    ("model", "path", "--json"),
    ("setup", "--dry-run", "--json"),
    ("doctor", "--json"),
    ("embed",),
)
WRITERS: tuple[Words, ...] = (
    ("config", "set", "server.port", "9000", "--json"),
    ("config", "set", "server.token", "another", "--json"),
    ("config", "unset", "model.max_tokens", "--json"),
    ("prune", "--json"),
    ("rollback", "--json"),
    ("setup", "--offline", "--yes", "--json"),
    ("bootstrap", "--offline", "--json"),
    ("model", "remove", "all-minilm-l6-v2", "--json"),
    # With an index that nobody answers for: what matters is how far it comes.
    ("bundle", "OPEN", "--for", "linux-x86_64", "--index-url", "http://127.0.0.1:9/simple", "--json"),
)
CHECK: Words = ("check", "--json")
"""It looks, and records what it saw where it may."""

LOOKERS = (*READERS, CHECK)
NEEDS_NO_STATE: tuple[Words, ...] = (("config", "path", "--json"),)


def named(words: Words) -> str:
    return " ".join(words).removesuffix(" --json").partition(" --index-url")[0]


@pytest.fixture(scope="module", autouse=True)
def _another_user() -> None:
    if (why := why_not()) is not None:
        pytest.skip(why)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that every user may enter: pytest keeps its own to itself."""
    folder = Path(tempfile.mkdtemp(prefix="imprint-homes-"))
    folder.chmod(0o755)
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def place() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@functools.cache
def measure(words: Words) -> Ran:
    """Return what a command does in a healthy home of its own."""
    with open_folder() as folder:
        home = make_home(folder / "home")
        give(home.root, SERVICE)
        return SERVICE.run(home.root, *words)


def calm(ran: Ran) -> None:
    """Whatever happens is told as one, and is not called a bug."""
    assert ran.code not in {70, -9, -11}, ran
    assert "Traceback" not in ran.out + ran.err, ran
    assert ran.document() if ran.out.count("\n{") == 0 else ran.lines()


def errors_of(ran: Ran) -> list[dict[str, str]]:
    document = (
        ran.lines()[-1]
        if '{"event"' in ran.out.replace('": "', '":"').replace('{"event":', '{"event"')
        else ran.document()
    )
    found: list[dict[str, str]] = document["errors"]
    return found


def apply(ran: Ran, home: Path) -> None:
    """Run the command that the first error's hint names, as whoever may."""
    hint = errors_of(ran)[0]["hint"]
    commands = re.findall(r"`([^`]+)`", hint or "")
    command = next(text for text in commands if re.match(r"(sudo )?(chown|chmod|chgrp|touch) ", text))
    words = shlex.split(command.removeprefix("sudo "))
    assert str(home) in words[-1], command
    ended = (ROOT_USER if "sudo" in command or "as root" in hint else SERVICE).start(words, home)
    assert ended.code == 0, ended


def until_mended(user: User, home: Path, words: Words, wanted: int) -> Ran:
    """Follow the hints until the command does what it does in a healthy home; a few may be needed, not many."""
    ran = user.run(home, *words)
    for _ in range(4):
        if ran.code == wanted:
            return ran
        calm(ran)
        apply(ran, home)
        ran = user.run(home, *words)
    assert ran.code == wanted, ran
    return ran


@pytest.mark.parametrize("words", LOOKERS, ids=named)
def test_a_home_made_by_root_is_read_by_a_service(place: Path, words: Words) -> None:
    home = make_home(place / "home")
    before = seen(home.root)
    ran = SERVICE.run(home.root, *words)
    calm(ran)
    assert ran.code == measure(words).code, ran
    if words[0] in {"status", "plan", "embed"}:
        data, usual = ran.document()["data"], measure(words).document()["data"]
        assert {**data, "seconds": 0, "proof": 0} == {**usual, "seconds": 0, "proof": 0}
    assert seen(home.root) == before


@pytest.mark.parametrize("words", WRITERS, ids=named)
def test_writing_in_a_home_made_by_root_names_its_owner_and_what_to_do(place: Path, words: Words) -> None:
    home = make_home(place / "home")
    before = seen(home.root)
    ran = SERVICE.run(home.root, *words)
    calm(ran)
    assert (ran.code, errors_of(ran)[0]["code"]) == (1, "home-not-writable")
    assert "belongs to root" in errors_of(ran)[0]["message"]
    assert seen(home.root) == before
    until_mended(SERVICE, home.root, words, measure(words).code)


def test_a_check_that_cannot_be_recorded_tells_what_it_found(place: Path) -> None:
    home = make_home(place / "home")
    before = seen(home.root)
    ran = SERVICE.run(home.root, *CHECK)
    calm(ran)
    assert errors_of(ran)[0]["code"] == errors_of(measure(CHECK))[0]["code"] == "check-failed"
    (warning,) = [one for one in ran.document()["warnings"] if one["code"] == "not-recorded"]
    assert "belongs to root" in warning["message"]
    assert seen(home.root) == before


def test_a_secret_of_root_is_not_read_and_that_is_said(place: Path) -> None:
    home = make_home(place / "home")
    ran = SERVICE.run(home.root, "config", "get", "server.token", "--json")
    assert (ran.code, errors_of(ran)[0]["code"]) == (3, "state-unreadable")
    assert "secrets.toml" in errors_of(ran)[0]["message"]
    told = SERVICE.run(home.root, "config", "list", "--json")
    assert [warning["code"] for warning in told.document()["warnings"]] == ["state-unreadable"]
    assert 'secret"' not in told.out


@pytest.mark.parametrize("words", [*LOOKERS, *WRITERS], ids=named)
def test_a_read_only_file_system(place: Path, words: Words) -> None:
    home = make_home(place / "home")
    give(home.root, SERVICE)
    before = seen(home.root)
    ran = run_in(place / "open", lambda: SERVICE.run(home.root, *words))
    calm(ran)
    if words in LOOKERS:
        assert ran.code == measure(words).code, ran
    else:
        assert (ran.code, errors_of(ran)[0]["code"]) == (1, "home-not-writable"), ran
        assert "read-only" in errors_of(ran)[0]["message"]
    assert seen(home.root) == before


@pytest.mark.parametrize("words", [*LOOKERS, *WRITERS], ids=named)
def test_a_home_that_may_not_be_entered(place: Path, words: Words) -> None:
    home = make_home(place / "home")
    home.root.chmod(0o700)
    before = seen(home.root)
    ran = SERVICE.run(home.root, *words)
    calm(ran)
    assert seen(home.root) == before
    if words in NEEDS_NO_STATE:
        assert ran.code == 0
    elif words[0] == "doctor":
        assert "state-unreadable" in {found["code"] for found in ran.document()["data"]["findings"]}
    elif words in LOOKERS:
        assert (ran.code, errors_of(ran)[0]["code"]) == (3, "state-unreadable"), ran
        assert "belongs to root" in errors_of(ran)[0]["message"]
        until_mended(SERVICE, home.root, words, measure(words).code)
    else:
        assert ran.code in {1, 3}, ran
        until_mended(SERVICE, home.root, words, measure(words).code)


@pytest.mark.parametrize("words", [*LOOKERS, *WRITERS], ids=named)
def test_one_run_with_sudo_and_a_strict_umask(place: Path, words: Words) -> None:
    home = make_home(place / "home")
    give(home.root, SERVICE)
    for path in (home.data, *home.data.iterdir(), home.runtimes / GENERATION, home.models, home.config):
        os.chown(path, 0, 0)
        path.chmod(0o700 if path.is_dir() else 0o600)
    before = seen(home.root)
    ran = SERVICE.run(home.root, *words)
    calm(ran)
    if words in LOOKERS:
        assert seen(home.root) == before
    if words[0] == "doctor":
        found = {one["code"] for one in ran.document()["data"]["findings"]}
        assert {"state-unreadable", "config-unreadable", "home-not-writable"} <= found
    elif words not in NEEDS_NO_STATE:
        assert ran.code in {1, 3}, ran
        assert "belongs to root" in errors_of(ran)[0]["message"], ran
        assert "chown -R" in errors_of(ran)[0]["hint"]
        until_mended(SERVICE, home.root, words, measure(words).code)


@pytest.mark.parametrize("name", ["config.toml", "data/current.json", f"runtimes/{GENERATION}/manifest.json"])
@pytest.mark.parametrize(
    "words", [("status", "--json"), ("embed",), ("setup", "--offline", "--yes", "--json")], ids=named
)
def test_one_file_that_cannot_be_read_is_not_taken_for_damaged(place: Path, words: Words, name: str) -> None:
    home = make_home(place / "home")
    give(home.root, SERVICE)
    os.chown(home.root / name, 0, 0)
    (home.root / name).chmod(0o600)
    ran = SERVICE.run(home.root, *words)
    assert (ran.code, errors_of(ran)[0]["code"]) == (3, "state-unreadable"), ran
    assert name in errors_of(ran)[0]["message"]
    assert not list(home.root.rglob("*.corrupt-*"))
    until_mended(SERVICE, home.root, words, measure(words).code)


@pytest.mark.parametrize("name", ["data/last_run.json", "data/gpu_state.json"])
def test_a_note_that_cannot_be_read_stops_nothing_on_the_cpu(place: Path, name: str) -> None:
    home = make_home(place / "home")
    (home.root / name).touch()
    give(home.root, SERVICE)
    os.chown(home.root / name, 0, 0)
    (home.root / name).chmod(0o600)
    for words in (("status", "--json"), ("embed",), ("plan", "--json")):
        ran = SERVICE.run(home.root, *words)
        assert ran.code == measure(words).code, ran
        if words[0] != "embed":  # which leaves a new note where it can
            assert "state-unreadable" in {one["code"] for one in ran.document()["warnings"]} or words[0] == "plan"
    ran = SERVICE.run(home.root, "plan", "--device", "gpu", "--json")
    assert ran.code == (3 if "gpu_state" in name else 0), ran


@pytest.mark.parametrize("words", READERS, ids=named)
@pytest.mark.parametrize("content", [b"{", b'{"schema": 99}'], ids=["damaged", "newer"])
@pytest.mark.parametrize("name", ["data/current.json", f"runtimes/{GENERATION}/manifest.json", "data/last_run.json"])
def test_who_only_looks_changes_no_damaged_or_newer_file(place: Path, words: Words, content: bytes, name: str) -> None:
    if words[0] in {"doctor", "devices", "machine", "model"} and name != "data/current.json":
        pytest.skip("told by one file of state already")
    home = make_home(place / "home")
    (home.root / name).write_bytes(content)
    give(home.root, SERVICE)
    before = seen(home.root)
    ran = SERVICE.run(home.root, *words)
    calm(ran)
    after = seen(home.root)
    for changed in {"data/last_run.json", "data"} if words == ("embed",) else ():
        after.pop(changed, None), before.pop(changed, None)
    assert after == before


@pytest.mark.parametrize("words", [*LOOKERS, *WRITERS], ids=named)
def test_a_group_shares_a_home(place: Path, words: Words) -> None:
    sharer = User(SERVICE.uid, SERVICE.gid, (SHARERS,), umask=0o002)
    home = make_home(place / "home")
    give(home.root, OWNER, group=SHARERS)
    before = seen(home.root)
    ran = sharer.run(home.root, *words)
    calm(ran)
    if words == ("config", "set", "server.token", "another", "--json"):
        # A secret is its owner's alone.
        assert errors_of(ran)[0]["code"] in {"state-unreadable", "home-not-writable"}
        return
    assert ran.code == measure(words).code, ran
    if words in READERS:
        assert seen(home.root) == before
    for path in home.root.rglob("*"):
        status = path.lstat()
        if not path.is_symlink() and path.name != "secrets.toml":
            assert status.st_gid == SHARERS, path
            assert status.st_mode & 0o060 == 0o060, path


FOREIGN = {
    "app.py": b"print()",
    "config.toml": b"[theirs]\nkey = 1\n",
    "data/current.json": b'{"theirs": true}',
    "data/.notes.abcdefgh.tmp": b"x",
    "runtimes/20200101T000000Z-keep-1.0-abcd/lib": b"x",
    "tool/env-x/lib": b"x",
    "models/theirs": b"x",
    "setup.lock.holder": b"x",
}


@pytest.mark.parametrize("words", [*LOOKERS, *WRITERS], ids=named)
def test_another_applications_folder_is_left_alone(place: Path, words: Words) -> None:
    root = place / "theirs"
    for name, content in FOREIGN.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    give(root, SERVICE)
    before = seen(root)
    ran = SERVICE.run(root, *words)
    calm(ran)
    assert seen(root) == before
    if words in WRITERS:
        assert (ran.code, errors_of(ran)[0]["code"]) == (1, "not-ours"), ran
        assert "`app.py`" in errors_of(ran)[0]["message"]
        apply(ran, root)
        assert errors_of(SERVICE.run(root, *words)) == [] or "not-ours" not in SERVICE.run(root, *words).out
    elif words[0] in {"status", "plan", "setup", "config"} and words != ("config", "path", "--json"):
        assert "not-ours" in ran.out


@pytest.mark.parametrize("part", ["", "runtimes", f"runtimes/{GENERATION}", f"runtimes/{GENERATION}/bin"])
def test_nothing_is_run_that_everybody_may_change(place: Path, part: str) -> None:
    home = make_home(place / "home")
    trap(home, place / "sprung")
    give(home.root, SERVICE)
    (home.root / part).chmod(0o777)
    for words in (("embed",), ("check", "--json"), ("machine", "--json")):
        ran = SERVICE.run(home.root, *words)
        assert (ran.code, errors_of(ran)[0]["code"]) == (1, "unsafe-home"), ran
    assert "unsafe-home" in SERVICE.run(home.root, "status", "--json").out
    found = SERVICE.run(home.root, "doctor", "--json").document()["data"]["findings"]
    assert "unsafe-home" in {one["code"] for one in found}
    assert not (place / "sprung").exists()
    interpreter = home.runtimes / GENERATION / "bin" / "python"
    interpreter.unlink()
    interpreter.symlink_to(python())
    until_mended(SERVICE, home.root, ("machine", "--json"), 0)


@pytest.mark.parametrize("words", [*LOOKERS, *WRITERS], ids=named)
def test_root_neither_runs_nor_changes_what_another_user_owns(place: Path, words: Words) -> None:
    home = make_home(place / "home")
    trap(home, place / "sprung")
    give(home.root, SERVICE)
    before = seen(home.root)
    ran = ROOT_USER.run(home.root, *words)
    calm(ran)
    assert seen(home.root) == before
    assert not (place / "sprung").exists()
    if words in WRITERS or words[0] in {"embed", "check", "machine"}:
        assert (ran.code, errors_of(ran)[0]["code"]) == (1, "unsafe-home"), ran


def trap(home: Home, sprung: Path) -> None:
    """Put something in the interpreter's place that tells that it was run."""
    interpreter = home.runtimes / GENERATION / "bin" / "python"
    interpreter.unlink()
    interpreter.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(sprung))}\nchmod 666 {shlex.quote(str(sprung))}\n")
    interpreter.chmod(0o755)
    sprung.parent.chmod(0o777)
