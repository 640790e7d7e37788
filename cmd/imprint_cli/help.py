"""Renders the help of a command: Typer knows the options, and what a person reads of them is decided here.

The parser's own rendering speaks its language (`[OPTIONS] COMMAND [ARGS]...`, `<list[str]>`, `[default: 60.0; x>=0]`)
and cuts summaries off.
"""

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

WIDEST = 100
NARROWEST = 60
COLUMN = 30
"""An option of more characters has its explanation on the line below."""

_OF_THE_PARSER = {
    "install_completion": "Install completion for this shell and exit.",
    "show_completion": "Print the completion script for this shell and exit.",
    "help": "Show this help and exit.",
}
"""Options that the parser brings along, in our words."""


def with_our_help(command: Any, names: tuple[str, ...] = ("imprint",)) -> None:  # noqa: ANN401 - Typer's types are private
    """Make a command, and those below it, show this help."""
    command.get_help = lambda context: render(command, names, context)
    for name, member in getattr(command, "commands", {}).items():
        with_our_help(member, (*names, name))


def render(command: Any, names: Sequence[str], context: Any, width: int | None = None) -> str:  # noqa: ANN401 - as above
    """Return the help of the command of these names."""
    wide = width or max(NARROWEST, min(WIDEST, shutil.get_terminal_size((80, 24)).columns - 1))
    params = command.get_params(context)
    members = getattr(command, "commands", {})
    parts = [f"Usage: {' '.join([*names, *_usage(params, group=bool(members))])}"]
    parts += [_paragraph(text, wide) for text in (command.help or "").split("\n\n")]
    arguments = [(_shown(param), _about(param)) for param in params if _is_argument(param) and _about(param)]
    parts += _section("Arguments", arguments, wide)
    parts += _section("Commands", [(name, _summary(member)) for name, member in members.items()], wide)
    parts += _section("Options", [(_shown(param), _about(param)) for param in params if not _is_argument(param)], wide)
    if members:
        begin = " Begin with `imprint setup`." if len(names) == 1 else ""
        parts.append(_paragraph(f"`{' '.join(names)} COMMAND --help` shows the options of a command.{begin}", wide))
    return "\n\n".join(parts)


def _is_argument(param: Any) -> bool:  # noqa: ANN401 - as above
    return str(param.param_type_name) == "argument"


def _usage(params: Sequence[Any], *, group: bool) -> Iterator[str]:
    if group:
        yield "COMMAND"
        return
    for param in params:
        if param.required and not _is_argument(param):
            yield _shown(param)
    for param in params:
        if _is_argument(param):
            yield _shown(param)
    yield "[OPTIONS]"


def _shown(param: Any) -> str:  # noqa: ANN401 - as above
    """Return an argument or an option as it is typed."""
    if _is_argument(param):
        return str(param.metavar or param.name.upper()).replace("]...", " …]")
    names = ", ".join(sorted(param.opts, key=len))
    return names if param.is_flag or not param.metavar else f"{names} {param.metavar}"


def _about(param: Any) -> str:  # noqa: ANN401 - as above
    text = _OF_THE_PARSER.get(param.name, str(getattr(param, "help", None) or ""))
    default = param.default
    if isinstance(default, str | int | float) and not isinstance(default, bool):
        shown = f"{default:g}" if isinstance(default, float) else default
        text = f"{text.removesuffix('.')} (default: {shown})."
    return text


def _summary(command: Any) -> str:  # noqa: ANN401 - as above
    return str(command.help or "").split("\n\n", 1)[0].replace("\n", " ")


def _paragraph(text: str, width: int) -> str:
    return "\n".join(_wrapped(text, width))


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)


def _section(title: str, rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    if not rows:
        return []
    column = min(COLUMN, max(len(left) for left, _ in rows)) + 4
    lines = [f"{title}:"]
    for left, right in rows:
        told = _wrapped(right, width - column) or [""]
        head = f"  {left}"
        if len(left) > COLUMN:
            lines.append(head)
        else:
            told[0] = head.ljust(column) + told[0]
            lines.append(told.pop(0))
        lines += [" " * column + line for line in told]
    return ["\n".join(line.rstrip() for line in lines)]
