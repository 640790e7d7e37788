"""Bundles that could serve nobody, or would lie where Imprint removes things, are refused before anything is made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from imprint.context import Context
from imprint.errors import ImprintError, UsageError
from imprint.operations.bundle import BundleOptions, bundle
from imprint.paths import Home
from support.sandbox import snapshot


def collect(tmp_path: Path, folder: Path, python: str | None = None) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}
    options = BundleOptions("linux-x86_64", folder, python=python, index_url="http://127.0.0.1:9/simple")
    bundle(Context(Home(tmp_path / "home"), environ, {"model.device": "cpu"}), options, lambda _: None)


@pytest.mark.parametrize("python", ["3.13t", "3.14t"])
def test_a_python_for_which_not_all_wheels_exist_is_refused(tmp_path: Path, python: str) -> None:
    with pytest.raises(ImprintError) as caught:
        collect(tmp_path, tmp_path / "bundle", python)
    assert caught.value.specific_code == "python-abi-no-wheel"
    assert "orjson" in caught.value.message
    assert caught.value.hint
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "folder",
    [
        *("home", "home/new", "home/runtimes", "home/runtimes/x", "home/models/x", "home/data/x", "home/tool/x"),
        *("home/.uv-cache/x", "home/runtimes/20260101T000000Z-cpu-1.31.1-abcd/new", "link/x", "link", "lent/x"),
        "other/../home/new",
    ],
)
def test_a_folder_of_imprints_own_is_refused(tmp_path: Path, folder: str) -> None:
    home = Home(tmp_path / "home")
    home.runtimes.mkdir(parents=True)
    home.marker.touch()
    (home.runtimes / "20260101T000000Z-cpu-1.31.1-abcd").mkdir()
    (tmp_path / "lent").mkdir()
    (tmp_path / "other").mkdir()
    home.models.symlink_to(tmp_path / "lent")
    (tmp_path / "link").symlink_to(home.runtimes)
    before = snapshot(tmp_path)
    with pytest.raises(UsageError) as caught:
        collect(tmp_path, tmp_path / folder)
    assert f"`{tmp_path / folder}`" in caught.value.message
    assert caught.value.hint
    assert snapshot(tmp_path) == before
