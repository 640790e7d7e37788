"""Removing a model takes its own files, and nothing that somebody else put there."""

from __future__ import annotations

from pathlib import Path

import pytest

from imprint.context import Context
from imprint.embedding.catalogue import load_catalogue
from imprint.embedding.models import flaws, folder_of
from imprint.errors import BusyError, ImprintError, InvalidValueError
from imprint.operations.model import list_models, remove_model
from imprint.paths import Home
from imprint.state import mutex
from support.sandbox import sandboxed

MODEL = load_catalogue().model(load_catalogue().default)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """Give a home in which the default model is installed, by name and size of its files."""
    home = Home(tmp_path / "home")
    folder = folder_of(home, MODEL.name)
    folder.mkdir(parents=True)
    home.marker.touch()
    for file in MODEL.files:
        with (folder / file.name).open("wb") as target:
            target.truncate(file.size)
    assert flaws(home, MODEL) == []
    return Context(home, {})


def test_a_model_goes_with_its_folder_and_the_bytes_are_said(context: Context) -> None:
    result = remove_model(context, MODEL.name)
    assert result.data["freed_bytes"] == sum(file.size for file in MODEL.files)
    assert sorted(result.data["removed"]) == sorted(file.name for file in MODEL.files)
    assert not folder_of(context.home, MODEL.name).exists()
    (shown,) = list_models(context).data["models"]
    assert shown["installed"] is False


def test_removing_the_configured_model_says_what_happens_then(context: Context) -> None:
    (warning,) = remove_model(context, MODEL.name).warnings
    assert warning.code == "model-configured"
    assert warning.hint == "run `imprint setup` to install it again"


@sandboxed
def test_other_files_and_what_links_lead_to_stay(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    folder, precious = folder_of(home, MODEL.name), tmp_path / "precious"
    folder.mkdir(parents=True)
    home.marker.touch()
    precious.write_bytes(b"precious")
    (folder / MODEL.files[0].name).symlink_to(precious)
    (folder / "notes.txt").write_bytes(b"mine")
    result = remove_model(Context(home, {}), MODEL.name)
    assert [warning.code for warning in result.warnings] == ["files-left", "model-configured"]
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    assert precious.read_bytes() == b"precious"


@sandboxed
def test_of_a_folder_that_is_a_link_only_the_link_goes(tmp_path: Path) -> None:
    home, elsewhere = Home(tmp_path / "home"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / MODEL.files[0].name).write_bytes(b"shared")
    home.models.mkdir(parents=True)
    home.marker.touch()
    folder_of(home, MODEL.name).symlink_to(elsewhere)
    assert remove_model(Context(home, {}), MODEL.name).data["freed_bytes"] == 0
    assert (elsewhere / MODEL.files[0].name).read_bytes() == b"shared"
    assert not folder_of(home, MODEL.name).is_symlink()


def test_what_is_not_there_or_not_known_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    context = Context(Home(tmp_path / "home"), {})
    with pytest.raises(ImprintError, match="not installed"):
        remove_model(context, MODEL.name)
    with pytest.raises(InvalidValueError) as caught:
        remove_model(context, "all-minilm-l6")
    assert caught.value.hint == f"did you mean `{MODEL.name}`?"
    with pytest.raises(InvalidValueError):
        remove_model(context, "../../etc")
    assert list(tmp_path.iterdir()) == []


def test_another_application_s_folder_is_left_alone(context: Context) -> None:
    context.home.marker.unlink()
    (context.home.root / "other.db").touch()
    with pytest.raises(ImprintError) as caught:
        remove_model(context, MODEL.name)
    assert caught.value.specific_code == "not-ours"
    assert flaws(context.home, MODEL) == []


def test_it_waits_for_whoever_changes_the_home(context: Context) -> None:
    with mutex.hold(context.home), pytest.raises(BusyError):
        remove_model(context, MODEL.name, wait_seconds=0)
    assert flaws(context.home, MODEL) == []
