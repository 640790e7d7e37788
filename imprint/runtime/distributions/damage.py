"""What is wrong with an installed package's files, in words. Pure."""

from __future__ import annotations

INTERRUPTED = "a change of it was interrupted"


def words_of(kind: str, count: int = 1, example: str | None = None) -> str:
    """Return one kind of damage as a fragment: how many files, and one of them."""
    shown = f", for example {example}" if example and count > 1 else f" ({example})" if example else ""
    files = "1 file" if count == 1 else f"{count} files"
    is_, has = ("is", "has") if count == 1 else ("are", "have")
    return {
        "missing": f"{files} {is_} missing{shown}",
        "size": f"{files} {has} a different size than recorded{shown}",
        "hash": f"{files} {has} different content than recorded{shown}",
        "no-record": "its RECORD is missing or damaged",
        "no-metadata": "its METADATA is missing or damaged",
        "odd-record": "its RECORD is not a regular file",
        "odd-metadata": "its METADATA is not a regular file",
        "no-installer": "its installation did not finish",
        "hollow": f"its modules are gone{shown}",
        "dangling": f"{files} {is_} a link to a missing file{shown}",
    }.get(kind, f"it is damaged{shown}")


def together(names: list[str]) -> str:
    """Return the fault of several builds over one folder."""
    return f"{' and '.join(names)} are installed in the same folder"
