"""docs/privacy.md says where each file lies, and the README leads to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from imprint.paths import Home
from imprint.runtime.check.children import QUIET
from imprint_cli.registry import COMMANDS
from privacy.test_nothing_is_sent import ASKED_TO_DOWNLOAD

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "privacy.md").read_text("utf-8")
HOME = Home(Path("/home"))
PATHS = sorted(name for name, member in vars(Home).items() if isinstance(member, property) and name != "root")


@pytest.mark.parametrize("name", PATHS)
def test_every_place_in_the_home_is_on_the_page(name: str) -> None:
    path = getattr(HOME, name).relative_to(HOME.root).as_posix()
    assert f"`{path}`" in PAGE or f"`{path}/" in PAGE


def test_what_downloads_is_on_the_page_and_exists() -> None:
    for words in ASKED_TO_DOWNLOAD:
        assert words[0] in COMMANDS
        assert f"`{words[0]}" in PAGE


def test_the_switch_is_named_and_the_readme_leads_there() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert all(f"{name}={value}" in PAGE for name, value in QUIET.items())
    assert "docs/privacy.md" in readme
    assert "## What is sent" in readme
