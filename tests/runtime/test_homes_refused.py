"""Nobody advises a setup of Imprint's own runtime in a home that setup would refuse: the refusal is told instead."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from imprint.context import Context
from imprint.errors import ImprintError
from imprint.operations.check import check
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.operations.embed import EmbedOptions, embed
from imprint.operations.plan import PlanOptions, plan
from imprint.operations.rollback import rollback
from imprint.operations.setup import SetupOptions, setup
from imprint.operations.status import status
from imprint.paths import Home
from imprint.situation import homes
from support.played_check import played_check


class Place:
    """A folder for a home, and the two things of a disk that no test can make: its mount, and its free space."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.patch = Home(root / "home"), monkeypatch

    def mounted(self, flag: int) -> None:
        """Let the disk be mounted so."""
        found = os.statvfs(self.home.root.parent)
        flags = os.statvfs_result((*tuple(found)[:8], found.f_flag | flag, *tuple(found)[9:]))
        self.patch.setattr(os, "statvfs", lambda _: flags)

    def denied(self, *places: Path) -> None:
        """Let nothing be written there, as for a user who is not root."""
        allowed = os.access

        def access(path: os.PathLike[str], mode: int, **how: bool) -> bool:
            return allowed(path, mode, **how) and not (mode & os.W_OK and Path(path) in places)

        self.patch.setattr(os, "access", access)


def read_only(place: Place) -> str:
    place.mounted(os.ST_RDONLY)
    place.denied(place.home.root.parent)
    return "home-not-writable"


def without_permission(place: Place) -> str:
    place.home.data.mkdir(parents=True)
    place.home.marker.touch()
    place.denied(place.home.data)
    return "home-not-writable"


def behind_a_file(place: Place) -> str:
    place.home.root.write_text("a file")
    return "home-not-writable"


def of_another_application(place: Place) -> str:
    place.home.root.mkdir()
    (place.home.root / "app.db").touch()
    return "not-ours"


def open_to_all(place: Place) -> str:
    place.home.root.mkdir()
    place.home.root.chmod(0o777)
    return "unsafe-home"


def noexec(place: Place) -> str:
    place.mounted(os.ST_NOEXEC)
    return "noexec-disk"


def full(place: Place) -> str:
    usage = shutil.disk_usage(place.home.root.parent)
    place.patch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=20_000_000))
    return "no-space"


ALL = pytest.mark.parametrize(
    "make", [read_only, without_permission, of_another_application, open_to_all, noexec, full]
)
Make = Callable[[Place], str]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@ALL
def test_every_command_tells_the_refusal_of_setup(make: Make, place: Place) -> None:
    code = make(place)
    context = Context(place.home, {"PATH": "/usr/bin:/bin"}, {"model.device": "cpu"})
    before = sorted(place.home.root.parent.rglob("*"))
    dry = setup(context, SetupOptions(dry_run=True), lambda _: None)
    refused = next(one for one in dry.warnings if one.code == code)
    assert refused.hint
    said: Any = status(context, prove=played_check).data
    assert said["pending"] is False
    assert said["problem"]["fix"] is None
    told = plan(context, PlanOptions(check=True), prove=played_check)
    findings = diagnose(context, DoctorOptions(), prove=played_check).data["findings"]
    fixes = [one["fix"] or "" for one in findings if one["status"] in {"warning", "error"}]
    with pytest.raises(ImprintError) as unchecked:
        check(context, prove=played_check)
    options = EmbedOptions(texts=("a text",))
    with pytest.raises(ImprintError) as unembedded:
        embed(context, options, lambda _: None, stdin=io.BytesIO, stdout=io.BytesIO())
    assert [(one.code, one.message, one.hint) for one in told.errors] == [(code, refused.message, refused.hint)]
    for hint in (said["problem"]["hint"], said["line"], unchecked.value.hint, unembedded.value.hint):
        assert refused.message in f"{hint} {unchecked.value.message}"
        assert "run `imprint setup`" not in str(hint)
    assert not [fix for fix in fixes if "imprint setup" in fix]
    assert sorted(place.home.root.parent.rglob("*")) == before


@pytest.mark.parametrize("make", [of_another_application, open_to_all, behind_a_file, noexec])
def test_setup_refuses_the_same_before_it_downloads_anything(make: Make, place: Place) -> None:
    code = make(place)
    context = Context(place.home, {"PATH": "/usr/bin:/bin"}, {"model.device": "cpu"})
    with pytest.raises(ImprintError) as refused:
        setup(context, SetupOptions(offline=True), lambda _: None)
    assert refused.value.specific_code == code


def test_a_home_that_setup_can_use_is_not_refused(place: Place) -> None:
    assert homes.refusal(place.home, None, managed=True) is None
    assert not place.home.root.exists()
    place.home.data.mkdir(parents=True)
    place.home.marker.touch()
    assert homes.refusal(place.home, None, managed=True) is None


def test_a_full_disk_counts_only_where_everything_has_to_come(place: Place) -> None:
    full(place)
    assert homes.refusal(place.home, 100_000_000, managed=True) is not None
    assert homes.refusal(place.home, 10_000_000, managed=True) is None
    place.home.cache.mkdir(parents=True)
    assert homes.refusal(place.home, 100_000_000, managed=True) is None


def test_a_failed_look_counts_as_nothing(place: Place) -> None:
    def broken(_: object) -> None:
        raise OSError(errno.ESTALE, "stale")

    place.patch.setattr(os, "statvfs", broken)
    assert homes.refusal(place.home, None, managed=True) is None


def test_a_rollback_without_a_previous_runtime_tells_that_setup_would_refuse(place: Place) -> None:
    context = Context(place.home, {"PATH": "/usr/bin:/bin"}, {"model.device": "cpu"})
    with pytest.raises(ImprintError, match="no previous runtime") as allowed:
        rollback(context)
    assert "`imprint setup` installs the planned one" in str(allowed.value.hint)
    noexec(place)
    with pytest.raises(ImprintError, match="no previous runtime") as refused:
        rollback(context)
    assert "`imprint setup` refuses: " in str(refused.value.hint)
    assert "noexec" in str(refused.value.hint)
