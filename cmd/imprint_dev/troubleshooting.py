"""Writes docs/troubleshooting.md from the tables that doctor uses, or says that the page differs from them."""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from imprint.doctor.codes import CODES, SECTIONS
from imprint.doctor.explanation import Explanation
from imprint.doctor.symptoms import SYMPTOMS, Symptom

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no public name

PAGE = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"

_WIDTH = 118

_INTRODUCTION = """# Troubleshooting

`imprint doctor` looks for everything on this page and names what it finds, what embeddings run on meanwhile, and the
command that mends it; `imprint doctor --venv PATH` does so for any Python environment and changes nothing in it.
`imprint doctor --explain CODE` prints an entry of this page. For a bug report, `imprint doctor --report` prints one
block without names, paths and secrets.

A command that is written `imprint setup` here is `imprint setup --venv PATH` for an environment of your own.

This page is written from the table that doctor uses (`python -m imprint_dev troubleshooting`). Codes of plans, which
say why a build was chosen or not, are in [reason codes](reason-codes.md).
"""


def render() -> str:
    """Return the page."""
    parts = [_INTRODUCTION, "## Start from what you notice\n"]
    parts += [_symptom(symptom) for symptom in SYMPTOMS]
    for title, codes in SECTIONS.items():
        entries = [_entry(code, found) for code, found in codes.items() if found.symptom]
        parts += [f"## {title}\n", *entries]
    return "\n".join(parts).rstrip() + "\n"


def _symptom(symptom: Symptom) -> str:
    links = ", ".join(f"[{code}](#{code})" for code in symptom.codes if code in CODES)
    return _item(f"**{symptom.notice}.** {symptom.advice}{f' See {links}.' if links else ''}") + "\n"


def _entry(code: str, found: Explanation) -> str:
    fix = _sentence(found.fix) if found.fix else "Nothing has to be done."
    told = {"You notice": _sentence(found.symptom), "It means": _sentence(found.means), "To mend it": fix}
    return "\n".join([f"### {code}\n", *(_item(f"**{name}:** {text}") for name, text in told.items()), ""])


def _item(text: str) -> str:
    return textwrap.fill(f"- {text}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _sentence(text: str) -> str:
    start = text[:1] if text.startswith("uv says") else text[:1].upper()
    end = "" if text.endswith((".", "!", "?")) else "."
    return f"{start}{text[1:]}{end}"


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("troubleshooting", help="write docs/troubleshooting.md from doctor's tables")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page differs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page, or compare it."""
    text = render()
    if not arguments.check:
        PAGE.write_text(text, "utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text("utf-8") == text:
        return 0
    print(f"{PAGE.name} differs from doctor's tables: run `python -m imprint_dev troubleshooting`", file=sys.stderr)
    return 1
