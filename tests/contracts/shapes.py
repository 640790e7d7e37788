"""Reads the shapes that docs/json.md shows and compares documents with them; the page is the only copy."""

import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "json.md"

_BLOCK = re.compile(r"^```shape (.+?)\n(.*?)^```", re.MULTILINE | re.DOTALL)

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "list": list,
}


def read_shapes() -> dict[str, Any]:
    """Return the shapes of the page by name."""
    return {name: json.loads(text) for name, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8"))}


SHAPES = read_shapes()


def problems(value: object, shape: object, path: str = "$") -> list[str]:
    """Return what is wrong with a value, each with its path; empty when it fits the shape."""
    if isinstance(shape, str):
        return _alternatives(value, shape, path)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{path}: a list was expected, not {value!r}"]
        return [problem for index, item in enumerate(value) for problem in problems(item, shape[0], f"{path}[{index}]")]
    assert isinstance(shape, dict)
    if not isinstance(value, dict):
        return [f"{path}: an object was expected, not {value!r}"]
    return _members(value, shape, path)


def _members(value: dict[str, Any], shape: dict[str, Any], path: str) -> list[str]:
    found: list[str] = []
    names = {name.removesuffix("?"): name for name in shape if name != "…"}
    for name, written in names.items():
        if name in value:
            found += problems(value[name], shape[written], f"{path}.{name}")
        elif not written.endswith("?"):
            found.append(f"{path}: {name} is missing")
    for name, member in value.items():
        if name not in names:
            if "…" not in shape:
                found.append(f"{path}: {name} is not documented")
            elif shape["…"] != "any":
                found += problems(member, shape["…"], f"{path}.{name}")
    return found


def _alternatives(value: object, shape: str, path: str) -> list[str]:
    tried: list[str] = []
    for word in shape.split("|"):
        if word.startswith("@"):
            inside = problems(value, SHAPES[word[1:]], path)
            if not inside:
                return []
            tried += inside
        elif _fits(value, word):
            return []
    return tried or [f"{path}: {shape} was expected, not {value!r}"]


def _fits(value: object, word: str) -> bool:
    if word == "any":
        return True
    if word.startswith("="):
        return value == (int(word[1:]) if word[1:].isdigit() else word[1:])
    if isinstance(value, bool):
        return word == "boolean"
    return isinstance(value, _TYPES[word])
