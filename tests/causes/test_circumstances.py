"""The words that commands in remedies need are those of this process, not of what a variable claims."""

from __future__ import annotations

import os

import pytest

from imprint.causes.catalogue import catalogue, general_remedies
from imprint.causes.circumstances import here


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no chown")
@pytest.mark.parametrize("number", [0, 61234])
@pytest.mark.parametrize("environ", [{"USER": "ada", "LOGNAME": "ada"}, {}])
def test_a_folder_is_given_to_the_user_that_the_process_runs_as(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], number: int
) -> None:
    """`su -m` and a container's `--user` leave USER as it was; and no name has to be looked up."""
    monkeypatch.setattr(os, "geteuid", lambda: number)
    for code in ("home-not-writable", "state-unreadable"):
        told = [advice.do for advice in general_remedies(catalogue().causes[code], here(environ, system="linux"))]
        assert f"chown -R {number} FOLDER" in told[0]


def test_where_nobody_is_known_the_shell_fills_in_the_user() -> None:
    told = [advice.do for advice in general_remedies(catalogue().causes["home-not-writable"])]
    assert 'chown -R "$(id -un)" FOLDER' in told[0]
