"""`model list|show|path|remove`: the catalogue, and what of it is on disk."""

from __future__ import annotations

from imprint import ownership
from imprint.context import Context
from imprint.embedding import models
from imprint.embedding.catalogue import Model, load_catalogue
from imprint.embedding.models import folder_of, model_files
from imprint.errors import ImprintError
from imprint.hints import helps
from imprint.results import Notice, Result
from imprint.runtime.interrupts import interruptible
from imprint.state import config, mutex
from imprint.values import Record


class ModelReport(Record):
    """One model of the catalogue; `path` where it is installed, `bytes` its size on disk."""

    name: str
    title: str
    configured: bool
    installed: bool
    path: str | None
    bytes: int
    dims: int
    max_tokens: int
    pooling: str
    normalize: bool
    query_prefix: str
    passage_prefix: str
    license: str
    differs: str | None


class Models(Record):
    """What `list` and `show` answer."""

    models: tuple[ModelReport, ...]


class ModelPath(Record):
    """Where an installed model lies."""

    name: str
    path: str


class RemovedModel(Record):
    """The files that were deleted; `configured` says whether `embed` would use this model."""

    name: str
    removed: tuple[str, ...]
    freed_bytes: int
    configured: bool


def names() -> tuple[str, ...]:
    """Return the names of the catalogue's models."""
    return tuple(load_catalogue().models)


def list_models(context: Context) -> Result[Models]:
    """Return every model of the catalogue: its facts, whether it is installed, and which one is configured."""
    chosen = _configured(context)
    catalogue = load_catalogue().models.values()
    wrong = [error for model in catalogue if (error := _wrong(context, model)) is not None]
    warnings = [Notice.of(error) for error in wrong if error.specific_code != "model-missing"]
    return Result(Models(tuple(_report(context, model, chosen) for model in catalogue)), tuple(warnings))


def show_model(context: Context, name: str | None = None) -> Result[Models]:
    """Return the facts of one model, by default the configured one. Raises InvalidValueError for an unknown one."""
    chosen = _configured(context)
    return Result(Models((_report(context, load_catalogue().model(name or chosen), chosen),)))


def model_path(context: Context, name: str | None = None) -> Result[ModelPath]:
    """Return the folder of an installed model. Raises ImprintError (`model-missing`, `model-damaged`)."""
    chosen = name or _configured(context)
    files = model_files(context.home, chosen)
    return Result(ModelPath(chosen, str(files.model.parent)))


def remove_model(context: Context, name: str, *, wait_seconds: float = mutex.DEFAULT_WAIT) -> Result[RemovedModel]:
    """Remove a model from the disk and say how many bytes that freed; what is not ours in its folder stays.

    Raises InvalidValueError for an unknown model, ImprintError (`model-missing`, `not-ours`, `home-not-writable`), and
    BusyError.
    """
    model = load_catalogue().model(name)
    chosen = _configured(context) == name
    ownership.require_ours(context.home)
    models.require_there(context.home, name)
    with interruptible("model remove"), mutex.hold(context.home, wait_seconds, command="imprint model remove"):
        removed = models.remove_model(context.home, model)
    warnings = []
    if removed.left:
        listed = ", ".join(f"`{entry}`" for entry in removed.left)
        place = folder_of(context.home, name)
        warnings.append(Notice("files-left", f"`{place}` stays, because it contains other files: {listed}"))
    if chosen:
        message = f"{name} is the configured model; nothing can be embedded without it"
        warnings.append(Notice("model-configured", message, helps("setup-again")))
    return Result(RemovedModel(name, tuple(removed.files), removed.size, chosen), tuple(warnings))


def _configured(context: Context) -> str:
    return config.load(context.home, context.environ, context.flags).text("model.name")


def _wrong(context: Context, model: Model) -> ImprintError | None:
    """Return why a model cannot be used, None when its files are there, of the right size, and can be read."""
    try:
        model_files(context.home, model.name)
    except ImprintError as error:
        return error
    return None


def _report(context: Context, model: Model, chosen: str) -> ModelReport:
    installed = _wrong(context, model) is None
    return ModelReport(
        name=model.name,
        title=model.title,
        configured=model.name == chosen,
        installed=installed,
        path=str(folder_of(context.home, model.name)) if installed else None,
        bytes=sum(file.size for file in model.files),
        dims=model.dims,
        max_tokens=model.max_tokens,
        pooling=model.pooling,
        normalize=model.normalize,
        query_prefix=model.query_prefix,
        passage_prefix=model.passage_prefix,
        license=model.license,
        differs=model.differs,
    )
