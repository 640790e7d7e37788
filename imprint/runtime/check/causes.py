"""Reads the cause out of what ONNX Runtime and NVIDIA's libraries wrote: patterns and plain words. Pure.

Only what is recognised is passed on, in one bounded line: their text holds source paths, colours and host names. The
messages are those of ONNX Runtime 1.23 to 1.31 and CUDA 12 and 13 (read from the libraries on 2026-11-29).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from imprint.last_words import decisive_line, shortened
from imprint.runtime.check.libraries import CUDNN_FILES, supplier_of
from imprint.values import Record
from imprint.words import FailureKind, Outcome


class Cause(Record):
    """A cause with an outcome and a kind of its own; `detail` is a sentence fragment."""

    outcome: Outcome
    kind: FailureKind
    detail: str


class Broken(Record):
    """A library that was not found, or, with `flaw`, was found and cannot be loaded."""

    library: str
    wanted_by: str | None = None
    wheel: str | None = None
    flaw: str | None = None
    told: str = ""

    @property
    def sentence(self) -> str:
        """What is wrong, as a sentence fragment."""
        by = f", which {self.wanted_by} needs," if self.wanted_by else ""
        wrong = f"cannot be loaded: {self.flaw}" if self.flaw else "was not found"
        return f"{self.library}{by} {wrong}" + (f"; {self.told}" if self.told else "")


_FAILURE = r"(?P<part>CUDA|CUDNN|CUBLAS|CUFFT|CURAND|NVRTC)(?:_FE)? failure (?P<code>\d+): (?P<text>[^;\n]{1,200})"
_SIGNS: tuple[tuple[str, Outcome, FailureKind, str], ...] = (
    (
        (
            r"(?i)out of memory|std::bad_alloc|bad allocation|MemoryError|cudaErrorMemoryAllocation"
            r"|Failed to allocate memory|CUDA failure 2:"
            r"|CU(?:DNN|BLAS)_STATUS_(?:ALLOC_FAILED|INTERNAL_ERROR_\w*ALLOCATION_FAILED)"
        ),
        "inconclusive",
        "out-of-memory",
        "memory ran out",
    ),
    # 46 devices unavailable (also: exclusive mode); 304 the operating system refused; 802 to 808 the fabric manager,
    # the driver under change, or MPS is not ready; 100, 101 and 999 the device went away since it was surveyed.
    (
        r"busy or unavailable|cudaErrorDevicesUnavailable|CUDA failure (?:46|100|101|304|80[2-8]|999):",
        "inconclusive",
        "busy",
        "the device cannot be used at the moment",
    ),
    # 98 and 209 no machine code; 218 and 222 PTX that the driver cannot compile.
    (
        (
            r"no kernel image|cudaErrorNoKernelImageForDevice|unsupported toolchain|CUDA failure (?:98|209|218|222):"
            r"|CU(?:DNN|BLAS)_STATUS_\w*ARCH_MISMATCH"
        ),
        "failed",
        "no-kernel",
        "this build has no code for this GPU",
    ),
)
_NOT_LOADED = r"Failed to load library (?P<by>.+?) with error: (?P<error>[^\n]+)"
_PRELOAD = r"(?m)^Failed to load (?P<path>.+?): (?P<error>.+)$"
_NOT_FOUND = r"(?P<library>[\w.+-]+\.so[\w.]*): cannot open shared object file"
_WINDOWS = r"(?:Error loading \"(?P<by>[^\"]+)\" )?which depends on \"(?P<library>[^\"]+)\" which is missing"
_CUDNN_PART = r"(?:Could not|Unable to) load (?:library |any of \{)?(?P<library>libcudnn\w*\.so[\w.]*|cudnn\w+\.dll)"
_NO_CUDNN = r"cuDNN is (?:not available|unavailable)"
_PTX_COMPILER = r"CUDA failure 221:|cudaErrorJitCompilerNotFound"


def cause_in(text: str) -> Cause | None:
    """Return the cause that explains all steps alike (memory, a busy device, no machine code), None without a sign."""
    for pattern, outcome, kind, detail in _SIGNS:
        if found := re.search(pattern, text):
            told = re.search(_FAILURE, text[max(0, found.start() - 40) :])
            exact = f" ({told['part']} error {told['code']}: {told['text'].strip()})" if told else ""
            return Cause(outcome, kind, detail + exact)
    return None


def broken_library(text: str, preload: str, cuda: str | None) -> Broken | None:
    """Return the library because of which the provider did not load, None when nothing names one.

    `text` is what was written while sessions were made, `preload` what `preload_dlls` printed before.
    """
    flaws = dict(_flaws(preload))
    found = re.search(_NOT_LOADED, text)
    if found is not None:
        by = _name(found["by"])
        missing = re.search(_NOT_FOUND, found["error"])
        if missing is not None:
            return _broken(missing["library"], by, cuda, flaws.get(missing["library"]))
        library, flaw = _flaw(found["error"], by)
        if library != by:
            return _broken(library, by, cuda, flaw)
        note = "the NVIDIA driver is too old for this build" if "undefined symbol: cu" in flaw else ""
        return Broken(by, None, None, flaw, note)
    if found := re.search(_WINDOWS, text):
        return _broken(found["library"], _name(found["by"] or "") or None, cuda, None)
    if re.search(_PTX_COMPILER, text):
        return Broken("libnvidia-ptxjitcompiler.so.1", "libcuda.so.1", None, None, "it comes with the NVIDIA driver")
    return None


def missing_cudnn(text: str, libraries: Mapping[str, str], cuda: str | None, system: str) -> Broken | None:
    """Return the part of cuDNN for want of which an operation failed, None when that is not why."""
    if found := re.search(_CUDNN_PART, text):
        return _broken(found["library"], "libcudnn.so.9" if ".so" in found["library"] else None, cuda, None)
    main = CUDNN_FILES.get(system)
    if main is None or main in libraries or not re.search(_NO_CUDNN, text):
        return None
    provider = "onnxruntime_providers_cuda.dll" if main.endswith(".dll") else "libonnxruntime_providers_cuda.so"
    return _broken(main, provider, cuda, None)


def plain(text: str) -> str:
    """Return the one line that says why, without colours, folders, code positions and host names."""
    if "fallback to CPU EP has been explicitly disabled" in text:
        return "the provider could not run it, and the check allows no other"
    if found := re.search(_FAILURE, text):
        return f"{found['part']} error {found['code']}: {found['text'].strip()}"
    line = re.sub(r"\bhostname=\S+", "", decisive_line(text))
    line = re.sub(r"(?:(?<!\w)[A-Za-z]:|(?<![\w:/]))(?:[/\\][^\s/\\:;,'\"]+)+[/\\]([^\s/\\:;,'\"]+)", r"\1", line)
    line = "".join(character if character.isprintable() else " " for character in line)
    return shortened(" ".join(line.split()))


def _flaws(preload: str) -> list[tuple[str, str]]:
    """Return what preloading said of libraries that are there and cannot be loaded for a reason of their own."""
    found = []
    for line in re.finditer(_PRELOAD, preload):
        library, flaw = _flaw(line["error"], _name(line["path"]))
        if library == _name(line["path"]) and "cannot open shared object file" not in flaw:
            found.append((library, flaw))
    return found


def _flaw(error: str, otherwise: str) -> tuple[str, str]:
    """Return the library that a loader's message is about, and what it says of it."""
    path, separator, rest = error.strip().partition(": ")
    if not separator or not re.search(r"\.so\b|\.dll$", path):
        return otherwise, plain(error)
    return _name(path), plain(rest)


def _broken(library: str, by: str | None, cuda: str | None, flaw: str | None) -> Broken:
    supplier = supplier_of(library, cuda)
    return Broken(library, by, supplier.wheel if supplier else None, flaw, supplier.told if supplier else "")


def _name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]
