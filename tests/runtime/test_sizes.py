"""The plan and the dry run name one sum, whatever an environment holds already."""

from __future__ import annotations

from pathlib import Path

import pytest

from imprint.context import Context
from imprint.operations.plan import PlanOptions, download_for, plan
from imprint.operations.setup import SetupOptions, setup
from support.foreign import BASE, Foreign, make_wheels
from support.played_check import home_with_model


@pytest.mark.parametrize("there", [(), ("tokenizers==0.23.3",), ("tokenizers==0.23.3", "orjson==3.13.0")])
def test_of_an_environment(there: tuple[str, ...], tmp_path: Path) -> None:
    wheels = make_wheels(tmp_path / "wheels")
    for name, version in (("orjson", "3.13.0"), ("tokenizers", "0.23.3")):
        wheels.add(name, version, {f"{name}/__init__.py": ""})
    foreign = Foreign(tmp_path, wheels)
    foreign.create(*(pin for pin in BASE if not pin.startswith("numpy")), "onnxruntime==1.26.0", *there)
    home_with_model(foreign.home)
    context = Context(foreign.home, {"PATH": "/usr/bin:/bin"}, {"model.device": "cpu"})
    dry = setup(context, SetupOptions(venv=foreign.prefix, dry_run=True), lambda _: None).data["download"]
    planned = plan(context, PlanOptions(venv=foreign.prefix)).payload
    assert download_for(context, planned, here=True, venv=foreign.prefix).to_json() == dry
