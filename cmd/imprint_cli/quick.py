"""Keeps Pydantic out of start-up: converts options that are text, numbers or flags without it.

Typer 0.29 builds a Pydantic adapter for every option that is no flag, also for one that was not given; importing
Pydantic takes as long as everything else together. Options of other types keep Typer's own conversion. When Typer
changes, this stops applying and only speed is lost; a test notices.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import typer

_PATH_CHECKS = ("exists", "writable", "resolve_path", "allow_dash")

_NAMES: dict[type, str] = {int: "whole number", float: "number"}


@dataclass(frozen=True, slots=True)
class Plain:
    """Converts what the command line gave for one option; `lowest` is the least number allowed, None for any."""

    kind: type
    many: bool
    lowest: float | None

    def coerce(self, value: object, param: object, ctx: object) -> object:  # noqa: ARG002 - Typer's signature
        """Return the converted value. Raises BadParameter, which Typer words."""
        if isinstance(value, (list, tuple)):
            return [self._one(item) for item in value]
        if value is None:
            return () if self.many else None
        return self._one(value)

    def _one(self, value: object) -> object:
        if self.kind is Path and not str(value):
            # Path("") is the current folder, which nobody means who gives an empty variable.
            raise typer.BadParameter("'' is not a path.")
        try:
            converted = self.kind(value)
        except ValueError:
            raise typer.BadParameter(f"{value!r} is not a {_NAMES.get(self.kind, self.kind.__name__)}.") from None
        if self.lowest is not None and not converted >= self.lowest:
            raise typer.BadParameter(f"{value!r} is not at least {self.lowest:g}.")
        return converted


def quicken(command: Any) -> None:  # noqa: ANN401 - Typer's own command types are private
    """Give a command and those below it the plain conversion wherever that is enough."""
    all_of = command.get_params

    def get_params(context: object) -> Any:  # noqa: ANN401 - as above
        # Asked for late, because Typer makes `--help` only then.
        found = all_of(context)
        for parameter in found:
            _quicken(parameter)
        return found

    command.get_params = get_params
    for member in getattr(command, "commands", {}).values():
        quicken(member)


def _quicken(parameter: Any) -> None:  # noqa: ANN401 - as above
    described = getattr(parameter, "type_descriptor", None)
    plain = _plain(described) if described is not None else None
    if plain is not None:
        parameter.get_runtime_param = lambda: plain


def _plain(described: Any) -> Plain | None:  # noqa: ANN401 - as above
    kind = described.annotation
    many = get_origin(kind) is list
    if many:
        (kind,) = get_args(kind) or (None,)
    given = described.parameter_info
    if kind not in {str, int, float, bool, Path} or given.parser is not None or described.choices is not None:
        return None
    if getattr(given, "max", None) is not None or any(getattr(given, check, False) for check in _PATH_CHECKS):
        return None
    return Plain(kind, many, getattr(given, "min", None))
