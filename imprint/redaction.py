"""Redacts by what may pass: of a text the words of our own sentences and values of known shapes, and nothing else.

A list of what must not pass is never complete. Names of people, hosts and folders, identifiers, addresses and whatever
a variable holds are words that we never wrote, so they become `…` without anybody having thought of them.
"""

from __future__ import annotations

import builtins
import errno
import functools
import os
import pkgutil
import re
import signal
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from types import CodeType

from imprint import resources

HIDDEN = "…"
PATH, ADDRESS = "<path>", "<address>"

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?"
_WORD = rf"(?:{_TIME})|[^\s\"'`(),;:=<>|\[\]{{}}…]+"
_TOKEN = re.compile(_WORD)
_QUOTED_PATH = re.compile(r"([`'\"])(?:~|[A-Za-z]:)?[/\\][^`'\"\n]*\1")
"""A path in quotes, which may hold spaces."""

_SHAPES = re.compile(
    rf"""
    \d{{1,5}} (?:\.\d{{1,3}})? %?                            # a count, a size, a compute capability
    | \d{{1,4}} (?:\.\d{{1,5}}){{1,2}} (?:(?:a|b|rc)\d{{1,3}})?   # a version; of four parts it may be an address
    | {_TIME} | \d{{4}}-\d\d-\d\d
    | cp3\d{{1,2}}t? | 0x[0-9A-F]{{2,8}}
    | (?:lib)?(?:cuda|cudart|cublas(?:Lt)?|cudnn|curand|cufft|nvrtc|nvJitLink|nvcuda|nvml|nvidia-\w{{2,16}}|vulkan
        |onnxruntime|stdc\+\+|gcc_s|gomp)[a-z_]{{0,24}} (?:64)?(?:_\d{{1,3}})? \.(?:so(?:\.\d{{1,5}}){{0,3}}|dll|dylib)
    """,
    re.VERBOSE,
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S*|\S+@\S+")
_FOUR_PARTS = re.compile(r"\d{1,3}(?:\.\d{1,5}){3}")
_ENDS = ".!?"

_MODEL = re.compile(
    r"[A-Z]{0,3}\d{2,5}[A-Z]{0,2}|\d{1,3}|[A-Z]\d{1,4}[A-Z]?|i[3579]|\d{1,3}[GM]i?B|\dg\.\d{1,3}gb|\d\.\d{1,2}GHz"
)
"""How models of chips are named, between hyphens: `A4000`, `4090`, `L4`, `80GB`, `i7`, `9750H`, `1g.10gb`."""

_CHIPS = frozenset(
    re.findall(
        r"\S+",
        """
        NVIDIA GeForce RTX GTX Tesla Quadro TITAN Ti SUPER Max Q Laptop GPU Graphics NVL PCIe SXM SXM2 SXM3 SXM4 SXM5
        HBM2 HBM3 HBM3e MIG Ada Generation Blackwell Grace Hopper Superchip Server Workstation Edition Mobile Orin Thor
        Xavier Jetson AGX NX Nano DGX Spark GRID vGPU AMD Radeon RX Pro PRO Vega Instinct Ryzen Threadripper EPYC Athlon
        FirePro XT XTX Intel Intel(R) Core Core(TM) Xeon Xeon(R) Pentium Celeron Atom Arc Iris Xe UHD HD Ultra CPU @
        Gold Silver Bronze Platinum Apple M1 M2 M3 M4 M5 Processor processor with Genuine Qualcomm Snapdragon Adreno
        ARM Mali Cortex Neoverse N1 N2 V1 V2 Ampere Altra Graviton llvmpipe SwiftShader Vulkan Device Subzero Google
        Microsoft Basic Render Driver software unnamed
        """,
    )
)
"""The words in names of GPUs and processors, as their makers write them."""


def redact_text(text: str, known: Collection[str] = ()) -> str:
    """Return `text` with each word that may not pass as `…` and each path as `<path>` (a known library's name stays).

    `known` are words that the caller has looked at, such as those of a chip's name.
    """
    text = _ADDRESS.sub(ADDRESS, text)
    text = _QUOTED_PATH.sub(lambda found: f"{found[1]}{_of_path(found[0][1:-1])}{found[1]}", text)
    allowed, parts, end, before = vocabulary(), [], 0, ""
    for found in _TOKEN.finditer(text):
        word = found[0]
        kept = word in known or _passes(word, before, allowed)
        parts += [_between(text[end : found.start()]), word if kept else _hidden(word)]
        end, before = found.end(), word
    return re.sub(r"…(?:[ .]?…)+", HIDDEN, "".join([*parts, _between(text[end:])]))


def redact_chip(name: str | None) -> str | None:
    """Return the name of a GPU or a processor with the words that makers use, and nothing else."""
    if name is None:
        return None
    kept = [word if word in _CHIPS or all(map(_names_a_chip, word.split("-"))) else HIDDEN for word in name.split()]
    return re.sub(r"…(?: …)+", HIDDEN, " ".join(kept))


def _names_a_chip(part: str) -> bool:
    return part in _CHIPS or _MODEL.fullmatch(part) is not None


def chip_words(name: str | None) -> frozenset[str]:
    """Return the words of a chip's name that may pass, for `known`."""
    return frozenset(_TOKEN.findall(redact_chip(name) or "")) - {HIDDEN}


@functools.cache
def vocabulary() -> frozenset[str]:
    """Return the words, in lower case, that our own sentences consist of, with those of the system's own errors.

    They are read out of the compiled modules, the catalogue of causes and the locks, so that they are always today's.
    """
    texts = [
        resources.data_path(name).read_text("utf-8") for name in ("causes.toml", "builds.json", "requirements.json")
    ]
    texts += [os.strerror(number) for number in errno.errorcode]
    texts += [name for name in dir(builtins) if name.endswith(("Error", "Exception", "Interrupt", "Exit"))]
    texts += [one.name for one in signal.Signals]
    for lock in resources.lock_path("cpu.txt").parent.glob("*.txt"):
        texts += re.findall(r"^[A-Za-z0-9][\w.-]*(?===)", lock.read_text("utf-8"), re.MULTILINE)
    for code in _modules():
        texts += _strings(code)
    return frozenset(bare.lower() for text in texts for word in _TOKEN.findall(text) if (bare := word.rstrip(_ENDS)))


def _passes(word: str, before: str, allowed: frozenset[str]) -> bool:
    bare = word.rstrip(_ENDS)
    if not bare or bare.lower() in allowed or _SHAPES.fullmatch(bare):
        return True
    # Versions of four parts look like addresses, and are told from them by the package before.
    return (
        bool(_FOUR_PARTS.fullmatch(bare))
        and before.lower() in allowed
        and before.startswith(("nvidia-", "onnxruntime"))
    )


def _hidden(word: str) -> str:
    if "/" in word or "\\" in word:
        return _of_path(word)
    return HIDDEN


def _of_path(path: str) -> str:
    name = re.split(r"[/\\]", path)[-1]
    return f"{HIDDEN}/{name}" if _SHAPES.fullmatch(name) and "." in name and not name[0].isdigit() else PATH


def _between(text: str) -> str:
    """Return what stands between words: marks and spaces, and nothing that does not print."""
    return "".join(mark if mark.isprintable() or mark == "\n" else " " for mark in text)


def _modules() -> Iterator[CodeType]:
    import imprint

    for module in pkgutil.walk_packages(imprint.__path__, "imprint."):
        if module.name == __name__:
            continue  # the words for chips are names of people elsewhere
        spec = find_spec(module.name)
        loader = getattr(spec, "loader", None)
        code = loader.get_code(module.name) if loader is not None and hasattr(loader, "get_code") else None
        if code is not None:
            yield code


def _strings(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from (one for one in constant if isinstance(one, str))
        elif isinstance(constant, CodeType):
            yield from _strings(constant)
