"""What a model needs and what a runtime reads: found in files and sessions, never in a table of versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from imprint.inside.check import newest_that_is_read
from imprint.inside.one_node import number, text
from imprint.runtime.check.reads import Needs, needs_from_json, needs_of


def written(folder: Path, ir: int, opset: int, *, domain: str = "", long: int = 0) -> Path:
    """Write a model of one node with these versions, and a graph of `long` more bytes."""
    node = text(1, "x") + text(2, "y") + text(4, "Identity")
    graph = text(1, node) + text(10, b"\0" * long)
    imported = text(1, domain) + number(2, opset)
    content = number(1, ir) + text(7, graph) + text(8, imported)
    path = folder / "model.onnx"
    path.write_bytes(content + text(8, text(1, "com.microsoft") + number(2, 1)))
    return path


@pytest.mark.parametrize("long", [0, 300, 200_000])
@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_a_model_says_what_it_needs(tmp_path: Path, domain: str, long: int) -> None:
    assert needs_of(written(tmp_path, 10, 21, domain=domain, long=long)) == Needs(10, 21)


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"not a model", b"\x3a\xff"])
def test_what_is_no_model_needs_nothing_that_is_known(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert needs_of(path) in {None, Needs()}
    assert needs_of(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("reads", "told"),
    [
        (Needs(9, 19), "the model has ONNX IR version 10, but ONNX Runtime 1.15.1 reads only up to 9"),
        (Needs(10, 19), "the model has ONNX opset 21, but ONNX Runtime 1.15.1 reads only up to 19"),
        (Needs(10, 21), None),
        (Needs(), None),
    ],
)
def test_what_is_too_new_is_said_with_both_numbers(reads: Needs, told: str | None) -> None:
    assert Needs(10, 21).beyond(reads, "1.15.1") == told


def test_a_runtime_is_asked_until_it_refuses() -> None:
    class Refuses:
        def __init__(self, content: bytes, *_: object, **__: object) -> None:
            ir, opset = content[1], content[-1]
            if ir > 9 or opset > 19:
                version = f"IR version: {ir}" if ir > 9 else f"opset {opset}"
                raise RuntimeError(f"Unsupported model {version}, or it is under development")

    class Runtime:
        InferenceSession = Refuses
        SessionOptions = type("Options", (), {})

    assert newest_that_is_read(Runtime) == {"ir": 9, "opset": 19}


def test_a_model_without_a_kernel_was_read() -> None:
    class Lacks:
        def __init__(self, content: bytes, *_: object, **__: object) -> None:
            if content[-1] > 19:
                raise RuntimeError("Opset 20 is under development and support for this is limited")
            if content[1] > 9:
                raise RuntimeError("Unsupported model IR version: 10, max supported IR version: 9")
            if content[-1] == 19:
                raise RuntimeError("NOT_IMPLEMENTED : Could not find an implementation for Identity(19) node")

    class Runtime:
        InferenceSession = Lacks
        SessionOptions = type("Options", (), {})

    assert newest_that_is_read(Runtime) == {"ir": 9, "opset": 19}


def test_what_is_recorded_comes_back() -> None:
    assert needs_from_json({"ir": 9, "opset": 19}) == Needs(9, 19)
    assert needs_from_json({"ir": "9"}) == Needs()
    assert needs_from_json(None) is None


def test_a_runtime_that_fails_for_another_reason_has_not_refused() -> None:
    """As where no more threads may be started: what it reads is then not known."""

    class Fails:
        def __init__(self, *_: object, **__: object) -> None:
            raise RuntimeError("pthread_create failed: Resource temporarily unavailable")

    class Runtime:
        InferenceSession = Fails
        SessionOptions = type("Options", (), {})

    with pytest.raises(RuntimeError, match="temporarily unavailable"):
        newest_that_is_read(Runtime)
