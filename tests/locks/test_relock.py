"""`relock` against the real registry: a claim without wheels is caught, and what is shipped is what compiles."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from imprint_dev.claims import TargetPlatform, parse_claims
from imprint_dev.layout import LOCKS
from imprint_dev.relock import Mode, relock, verify
from imprint_dev.uv import find_uv

pytestmark = pytest.mark.slow

LOCKED = parse_claims((LOCKS / "platforms.toml").read_text(encoding="utf-8"))
MUSL = TargetPlatform("linux-musl", "x86_64-unknown-linux-musl", None, "3.12")


def text_of(name: str) -> str:
    return (LOCKS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "spot", "package"),
    [
        ("cpu", MUSL, "onnxruntime"),
        ("cuda13", TargetPlatform("too-old", "aarch64-manylinux_2_28", None, "3.12"), "onnxruntime-gpu"),
        ("cuda12", TargetPlatform("no-arm", "aarch64-manylinux_2_34", None, "3.12"), "onnxruntime-gpu"),
        ("cpu", TargetPlatform("no-intel", "x86_64-apple-darwin", "14.0", "3.12"), "onnxruntime"),
        ("cpu", TargetPlatform("old-python", "x86_64-manylinux_2_28", None, "3.10"), "numpy"),
    ],
)
def test_a_claimed_machine_without_wheels_is_caught(name: str, spot: TargetPlatform, package: str) -> None:
    doctored = replace(LOCKED[name], spots=(spot,))
    ((refused, words),) = verify(find_uv(), doctored, text_of(name))
    assert refused == spot
    assert package in words


def test_a_lock_with_a_false_claim_is_not_written(tmp_path: Path) -> None:
    shutil.copy(LOCKS / "cpu.in", tmp_path)
    doctored = replace(LOCKED["cpu"], spots=(MUSL,))
    said: list[str] = []
    assert relock(find_uv(), doctored, tmp_path, Mode(), say=said.append) == 1
    assert not (tmp_path / "cpu.txt").exists()
    assert any("claims linux-musl, Python 3.12, but" in line for line in said)


@pytest.mark.parametrize(
    ("shipped", "stale"),
    [("flatbuffers==25.12.19", "flatbuffers==25.2.10"), ("--hash=sha256:7634", "--hash=sha256:0000")],
    ids=["another version", "a wrong hash"],
)
def test_check_writes_nothing_and_fails_on_a_difference(tmp_path: Path, shipped: str, stale: str) -> None:
    shutil.copy(LOCKS / "cpu.in", tmp_path)
    text = text_of("cpu").replace(shipped, stale)
    assert text != text_of("cpu")
    (tmp_path / "cpu.txt").write_text(text, encoding="utf-8")
    one = replace(LOCKED["cpu"], spots=LOCKED["cpu"].spots[:1])
    said: list[str] = []
    assert relock(find_uv(), one, tmp_path, Mode(check=True), say=said.append) == 1
    assert (tmp_path / "cpu.txt").read_text(encoding="utf-8") == text
    assert any(line.startswith("cpu: flatbuffers: ") for line in said)


@pytest.mark.parametrize("name", LOCKED)
def test_every_lock_is_what_its_source_compiles_to_and_its_claims_hold(name: str) -> None:
    """With a tenth of the counts, each platform is tried with the first Python claimed for it."""
    lock = LOCKED[name]
    if os.environ.get("TEST_COUNTS") == "tenth":
        firsts = {spot.platform: spot for spot in reversed(lock.spots)}
        lock = replace(lock, spots=tuple(firsts.values()))
    said: list[str] = []
    assert relock(find_uv(), lock, LOCKS, Mode(check=True), say=said.append) == 0, said
