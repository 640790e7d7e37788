"""What is meant to be shared names nobody: secrets are planted in every field of what is known, and none comes out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprint.diagnosis import report
from imprint.diagnosis.checks import CHECKS, run
from imprint.diagnosis.facts import Facts
from imprint.diagnosis.findings import counts
from imprint.errors import ImprintError
from imprint.planning.builds import parse_builds
from imprint.planning.model import Machine, OtherGpu, Request
from imprint.planning.rule import decide
from imprint.probing.redact import redact
from imprint.redaction import redact_chip, redact_text, vocabulary
from imprint.values import Record, fields_of
from imprint.words import AskedDevice
from planning.strategies import machines, odd_machines
from support.recorded import BASES, FACTS, changed, fact, facts_from_json

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests" / "diagnosis" / "cases").glob("*.json"))
SECRETS = st.text("abcxyzABCXYZ0189-_", min_size=3, max_size=12).map(lambda text: f"Zq{text}9xKw")
SHAPES = (
    "{0}",
    "{1} {0}",
    "{1}{0}",
    "/home/{0}/{1}",
    "C:\\Users\\{0}\\x",
    "https://u:{0}@{0}.example/{0}",
    "{0}@{0}.example",
    "GPU-{0}",
    "it says `{0}: {1}`",
)


def planted(value: Any, plant: Callable[[str], str]) -> Any:  # noqa: ANN401, PLR0911 - any record
    """Return a record with every text in it changed by `plant`, and one more entry in every mapping."""
    if isinstance(value, str):
        return plant(value)
    if isinstance(value, ImprintError):
        return ImprintError(plant(value.message), hint=plant(value.hint or ""))
    if isinstance(value, Mapping):
        # The names there are what checks look for, so another one is planted beside them.
        return {**{key: planted(one, plant) for key, one in value.items()}, plant("KEY"): plant("value")}
    if isinstance(value, tuple | list | frozenset):
        return type(value)(planted(one, plant) for one in value)
    if isinstance(value, Record):
        return type(value)(**{name: planted(getattr(value, name), plant) for name in fields_of(type(value))})
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{one.name: planted(getattr(value, one.name), plant) for one in fields(value)})
    return value


def reported(facts: Facts) -> str:
    findings = run(CHECKS, facts)
    return report.compose(report.surroundings(facts), findings, counts(findings), {}, report.chips_of(facts))


@settings(deadline=None)
@given(secret=SECRETS, shape=st.sampled_from(SHAPES), base=st.sampled_from([*BASES, *CASES]))
def test_no_secret_in_any_fact_reaches_the_report(secret: str, shape: str, base: str | Path) -> None:
    facts = BASES[base] if isinstance(base, str) else facts_from_json(json.loads(base.read_text("utf-8"))["facts"])
    ours = {"around", "kinds"}  # traits of the system, which are words of ours

    def plant(text: str) -> str:
        return shape.format(secret, text)

    others = {name: planted(fact(facts, name), plant) for name in FACTS if name not in ours}
    assert secret not in reported(changed(facts, failures=planted(facts.failures, plant), **others))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_was_found_can_still_be_read(path: Path) -> None:
    """A state as it is, without secrets: of our own sentences nearly all words are there."""
    facts = facts_from_json(json.loads(path.read_text("utf-8"))["facts"])
    for finding in run(CHECKS, facts):
        told = redact_text(finding.seen, report.chips_of(facts))
        assert told.count("…") <= 2 + finding.seen.count("/"), (finding.seen, told)


@settings(deadline=None)
@given(machine=machines, secret=SECRETS, shape=st.sampled_from(SHAPES))
def test_no_secret_in_any_field_of_a_machine_is_left(machine: Machine, secret: str, shape: str) -> None:
    changed = redact(planted(machine, lambda text: shape.format(secret, text)))
    assert secret not in json.dumps(asdict(changed), ensure_ascii=False)
    assert secret not in json.dumps(changed.to_json(), ensure_ascii=False)


TABLE = parse_builds(json.loads((ROOT / "data" / "builds.json").read_text("utf-8")), {}, "")


@settings(deadline=None)
@given(machine=machines | odd_machines, device=st.sampled_from(["cpu", "gpu", "auto"]))
def test_a_redacted_machine_gives_the_same_plan(machine: Machine, device: AskedDevice) -> None:
    def essence(one: Machine) -> tuple[object, ...]:
        plan = decide(Request(device), one, TABLE, (), None)
        return plan.build, plan.code, plan.provisional, [(refusal.build, refusal.code) for refusal in plan.refused]

    assert essence(redact(machine)) == essence(machine)
    assert redact(redact(machine)) == redact(machine)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "NVIDIA GeForce RTX 4090 Laptop GPU",
            "NVIDIA H100 80GB HBM3",
            "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
        ),
        *(
            "Tesla V100-SXM2-16GB",
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "NVIDIA GB10",
            "Apple M2 Pro",
        ),
        *("AMD EPYC 7763 64-Core Processor", "Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz", "AMD Radeon RX 7900 XTX"),
        *("Intel(R) UHD Graphics 630", "Neoverse-N1", "NVIDIA RTX A4000", "NVIDIA GeForce GTX 1080 Ti"),
    ],
)
def test_names_of_real_chips_pass(name: str) -> None:
    assert redact_chip(name) == name


def test_the_words_are_ours_and_no_names_of_people_or_hosts() -> None:
    words = vocabulary()
    assert {"onnxruntime-gpu", "cuda_visible_devices", "driver-too-old", "permission", "sigsegv"} <= words
    assert not words & {"bob", "alice", "hunter2", "corp", "acme"}


def test_addresses_with_numbers_are_told_from_versions() -> None:
    text = "nvidia-cublas 13.0.2.14 from 192.168.1.20 and driver 580.95.05"
    assert redact_text(text) == "nvidia-cublas 13.0.2.14 from … and driver 580.95.05"


def test_a_known_librarys_name_stays_and_its_folder_goes() -> None:
    assert redact_text("`/home/Ada Lovelace/x/libcuda.so.570.133.07` is there") == "`…/libcuda.so.570.133.07` is there"
    assert redact_text("it lies in /srv/acme/env") == "it lies in <path>"
    unknown = Machine(other_gpus=(OtherGpu(vendor="amd", name="Zq"),))
    assert redact(unknown).other_gpus == (OtherGpu(vendor="amd", name="…"),)
