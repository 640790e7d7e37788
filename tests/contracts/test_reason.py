"""The plan's reason is one text, and every place that says why uses it word for word."""

from pathlib import Path

import pytest

from imprint.operations.config import set_key
from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.operations.plan import PlanOptions, plan
from imprint.operations.setup import Seams, SetupOptions, setup
from imprint.operations.status import status
from imprint_cli.provision import render_setup
from imprint_cli.render import render_plan, render_set, render_status
from imprint_cli.render_doctor import render_findings
from support.place import Place, no_model
from support.twins import make_twins, twin_check


@pytest.mark.parametrize("device", ["cpu", "gpu", "auto"])
def test_the_reason_is_the_same_everywhere(device: str, tmp_path: Path) -> None:
    """Setup, `config set`, status and doctor repeat what the plan says, whatever this machine has."""
    place = Place(tmp_path / "home", make_twins(tmp_path / "twins"))
    set_key(place.context, "model.device", "auto" if device != "auto" else "cpu")
    chosen = set_key(place.context, "model.device", device)
    reason = str(plan(place.context, PlanOptions()).data["reason"])
    assert reason in render_set(chosen.payload)

    seams = Seams(check=twin_check, lock_path=place.twins.lock_path, install_model=no_model)
    options = SetupOptions(offline=True, find_links=place.twins.wheels)
    done = setup(place.context, options, lambda _: None, seams=seams)
    assert done.data["plan"]["reason"] == reason
    assert reason in render_setup(done.payload).splitlines()[-1]

    assert reason in render_plan(plan(place.context, PlanOptions()).payload)
    said = status(place.context).payload
    assert reason in render_status(said)
    assert render_status(said).endswith(f"; since {said.since}")
    found = diagnose(place.context, DoctorOptions(ids=("runtime:embedding-device",)))
    assert reason in found.data["findings"][0]["seen"]
    assert reason in render_findings(found.payload)
