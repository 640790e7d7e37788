"""Reads the launcher's own options and the few of the command's words that count for the first start too."""

from __future__ import annotations

from collections.abc import Sequence

GROUPS = frozenset({"config", "model"})
"""Commands of two words."""


def parse_arguments(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Split the launcher's own options (before `--`) from the words of the command."""
    cut = list(words).index("--") if "--" in words else len(words)
    own, rest = list(words[:cut]), list(words[cut + 1 :])
    return dict(zip((name.lstrip("-") for name in own[::2]), own[1::2], strict=True)), rest


def value_of(option: str, words: Sequence[str]) -> str | None:
    """Return the value that `words` give an option, as `--option VALUE` or `--option=VALUE`."""
    for word, following in zip(words, [*words[1:], None], strict=False):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def command_of(words: Sequence[str]) -> str:
    """Return the command that the words name, as the envelope writes it; `imprint` when they name none."""
    named = [word for word in words if not word.startswith("-")]
    return " ".join(named[: 2 if named[:1] and named[0] in GROUPS else 1]) or "imprint"
