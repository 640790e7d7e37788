"""Writes docs/troubleshooting.md and docs/reason-codes.md from data/causes.toml, or says which page differs from it."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from imprint.causes.catalogue import Catalogue, Cause, Symptom, catalogue, general_remedies

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no public name

DOCS = Path(__file__).resolve().parents[2] / "docs"
TROUBLESHOOTING = DOCS / "troubleshooting.md"
REASON_CODES = DOCS / "reason-codes.md"

_WIDTH = 118

_HEAD = """# Troubleshooting

## I have a GPU and it runs on the CPU

The CPU is the default: Imprint uses a GPU only when you ask for one. To ask for it and install what it needs:

```
imprint config set model.device gpu
imprint setup
```

(`auto` works too; `gpu` also warns when embeddings run on the CPU instead.)

The first command says whether a GPU can be used here, and if not, why. The second downloads the CUDA libraries (1 to
2 GB), proves that the GPU computes correctly, and ends with one line that says what embeddings run on. If that is still
the CPU, the line says why:

| if `imprint status` says | then |
|---|---|
| `model.device is cpu` | run the two commands above |
| there is no driver, or it is too old | `imprint plan` names the driver to install, or says that none would help |
| `no GPU is passed into this container` | start the container with `docker run --gpus all …` |
| the check failed, or the GPU is not proved | `imprint doctor` names the cause; then `imprint setup --retry-gpu` |
| the GPU is not NVIDIA's, or this is a Mac | stay on the CPU: CUDA builds run only on NVIDIA GPUs (Linux, Windows) |

To go back: `imprint config set model.device cpu`, then `imprint setup`. For an environment of your own, add
`--venv PATH` to `setup`, `status` and `doctor`.

## The rest of this page

`imprint doctor` checks for every problem below and reports what it finds, what embeddings run on now, and what helps;
`imprint doctor --venv PATH` does so for any Python environment and changes nothing in it.
`imprint doctor --explain CODE` prints an entry of this page. For a bug report, `imprint doctor --report` prints one
block without names, paths and secrets.

Where this page says `imprint setup`, use `imprint setup --venv PATH` for an environment of your own. Doctor prints the
commands for your environment and your shell; replace words in CAPITALS with your own values.

Plan codes, which say why a build was or wasn't chosen, are in [reason codes](reason-codes.md).
"""

_CODES_HEAD = """# Reason codes

Every plan says in one sentence what decides where embeddings run, and carries a code that stays the same when the
sentence changes. `imprint plan` shows both; `imprint plan --explain` shows every build and every gate;
`imprint plan --json` has them as `code` and `reason`, and under `refused` the code of each build that was passed over.

This page explains each code: what was seen, what it means, and what you can do. Where a change would help on *your*
machine, the plan carries a `hint`. It names a newer driver or another GPU only if a plan with that would use a GPU, and
gives other advice only where it can work.

What `imprint doctor` finds is explained in [troubleshooting](troubleshooting.md).
"""

_FOOT = "---\n\nThis page is generated from `data/causes.toml` (`python -m imprint_dev pages`).\n"

_NOTES = {
    "none": """\
The plan's `build` is null and nothing is installed. The hint names the nearest machine that has a build. Imprint tests
these conditions in this order. `libc-musl` and `libc-too-old` can also say why a GPU build is refused although a CPU
build exists.
""",
    "note": "Notes refuse nothing; they are under `notes`.\n",
}


def render_troubleshooting(known: Catalogue) -> str:
    """Return the page that starts from what somebody notices."""
    parts = [_HEAD, "## Start from what you notice\n"]
    parts += [_symptom(symptom, known) for symptom in known.symptoms]
    for section, title in known.sections.items():
        entries = [_finding(cause) for cause in known.causes.values() if cause.section == section and cause.notice]
        parts += [f"## {title}\n", *entries]
    return "\n".join([*parts, _FOOT])


def render_reason_codes(known: Catalogue) -> str:
    """Return the page that explains the codes of plans."""
    parts = [_CODES_HEAD]
    for group, title in known.groups.items():
        parts += [f"## {title}\n", *([_NOTES[group]] if group in _NOTES else [])]
        parts += [_reason(cause) for cause in known.causes.values() if cause.group == group]
    return "\n".join([*parts, _FOOT])


def _symptom(symptom: Symptom, known: Catalogue) -> str:
    links = ", ".join(f"[{code}](#{code})" for code in symptom.codes if code in known.causes)
    return _item(f"**{symptom.notice}.** {symptom.advice}{f' See {links}.' if links else ''}") + "\n"


def _finding(cause: Cause) -> str:
    return _entry(cause, {"You notice": cause.notice or "", "It means": cause.means}, "What helps")


def _reason(cause: Cause) -> str:
    return _entry(cause, {"Seen": cause.seen or "", "Means": cause.means}, "To do")


def _entry(cause: Cause, told: Mapping[str, str], helps: str) -> str:
    lines = [f"### {cause.code}\n", *(_item(f"**{name}:** {_sentence(text)}") for name, text in told.items())]
    if cause.like is not None:
        return "\n".join([*lines, _item(f"**{helps}:** As for {_link(cause, cause.like)}."), ""])
    remedies = [remedy.do for remedy in general_remedies(cause)]
    if len(remedies) < 2:
        lines.append(_item(f"**{helps}:** {_sentence(remedies[0]) if remedies else 'Nothing.'}"))
    else:
        lines.append(f"- **{helps}:**")
        lines += [textwrap.indent(_item(_sentence(remedy)), "  ") for remedy in dict.fromkeys(remedies)]
    return "\n".join([*lines, ""])


def _link(cause: Cause, code: str) -> str:
    """Return the link to another entry, on whichever page that is."""
    other = catalogue().causes[code]
    if cause.section is not None:
        return f"[{code}]({'' if other.section is not None else REASON_CODES.name}#{code})"
    return f"[{code}]({'' if other.group is not None else TROUBLESHOOTING.name}#{code})"


def _item(text: str) -> str:
    return textwrap.fill(f"- {text}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _sentence(text: str) -> str:
    start = text[:1] if re.match(r"uv says|`", text) else text[:1].upper()
    end = "" if text.endswith((".", "!", "?", ".`")) else "."
    return f"{start}{text[1:]}{end}"


PAGES = {TROUBLESHOOTING: render_troubleshooting, REASON_CODES: render_reason_codes}
"""Each page that is written from the catalogue."""


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("pages", help="write the pages of docs/ that come from data/causes.toml")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page differs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the pages, or compare them."""
    different = [page for page, render in PAGES.items() if page.read_text("utf-8") != render(catalogue())]
    if not arguments.check:
        for page in different:
            page.write_text(PAGES[page](catalogue()), "utf-8")
        return 0
    for page in different:
        print(f"{page.name} differs from data/causes.toml: run `python -m imprint_dev pages`", file=sys.stderr)
    return 1 if different else 0
