"""Broken states built for real, from tiny wheels: doctor names the cause, and what it says to run mends it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from imprint.operations.doctor import DoctorOptions, diagnose
from imprint.operations.setup import Seams, SetupOptions, setup
from support.place import Place, no_model
from support.played_check import played_check
from support.played_runtime import played_twins
from support.twins import Twins, twin_check


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """Make the wheels once."""
    return played_twins(tmp_path_factory.mktemp("twins"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, twins: Twins) -> Path:
    """Make a home with the CPU build, set up and proved, once."""
    made = Place(tmp_path_factory.mktemp("template") / "home", twins)
    provision(made)
    return made.home.root


@pytest.fixture
def place(tmp_path: Path, twins: Twins, template: Path) -> Place:
    """Give a copy of that home."""
    root = tmp_path / "my hömé"
    shutil.copytree(template, root, symlinks=True)
    return Place(root, twins)


def provision(place: Place, **options: bool) -> None:
    seams = Seams(check=twin_check, lock_path=place.twins.lock_path, install_model=no_model)
    setup(
        place.context,
        SetupOptions(offline=True, find_links=place.twins.wheels, **options),  # type: ignore[arg-type]
        lambda _: None,
        seams=seams,
    )


def findings(place: Place, *ids: str, deep: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Return what is not ok, by check; the model is left out, the tiny wheels have none."""
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in diagnose(place.context, DoctorOptions(ids=ids, deep=deep), prove=played_check).data["findings"]:
        if finding["status"] != "ok" and finding["id"] not in {"model:files", "embedding:run"}:
            found.setdefault(finding["id"], []).append(finding)
    return found


def packages(place: Place) -> Path:
    return next(place.prefix.glob("lib/python3*/site-packages"))


def lose_a_file(place: Place) -> None:
    (packages(place) / "onnxruntime" / "part3.py").unlink()


def cut_a_file(place: Place) -> None:
    path = packages(place) / "onnxruntime" / "capi" / "library.so"
    path.unlink()
    path.write_text("short", encoding="utf-8")


def hollow_out(place: Place) -> None:
    shutil.rmtree(packages(place) / "onnxruntime")


def interrupt_the_install(place: Place) -> None:
    (next(packages(place).glob("onnxruntime-*.dist-info")) / "INSTALLER").unlink()


def lose_the_record(place: Place) -> None:
    (next(packages(place).glob("onnxruntime-*.dist-info")) / "RECORD").unlink()


def install_both(place: Place) -> None:
    info = next(packages(place).glob("onnxruntime-*.dist-info"))
    other = info.with_name(info.name.replace("onnxruntime-", "onnxruntime_gpu-"))
    shutil.copytree(info, other)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 1.31.1\n", encoding="utf-8")


def lose_the_interpreter(place: Place) -> None:
    for path in (place.prefix / "bin").glob("python*"):
        path.unlink()


@pytest.mark.parametrize(
    ("breakage", "check", "code"),
    [
        (lose_a_file, "target:integrity", "install-incomplete"),
        (cut_a_file, "target:integrity", "install-incomplete"),
        (hollow_out, "target:integrity", "runtime-hollow"),
        (interrupt_the_install, "target:integrity", "install-incomplete"),
        (lose_the_record, "target:integrity", "metadata-damaged"),
        (install_both, "runtime:duplicates", "duplicate-runtimes"),
        (lose_the_interpreter, "target:interpreter", "interpreter-gone"),
    ],
)
def test_a_broken_runtime_is_named_and_the_fix_mends_it(
    place: Place, breakage: Callable[[Place], None], check: str, code: str
) -> None:
    breakage(place)
    found = findings(place)
    assert code in {finding["code"] for finding in found[check]}
    assert all(finding["fix"] for finding in found[check] if finding["status"] == "error")
    provision(place, repair="--repair" in found[check][0]["fix"])
    assert findings(place) == {}


def test_other_content_of_the_same_size_shows_with_deep_alone(place: Place) -> None:
    path = packages(place) / "onnxruntime" / "capi" / "library.so"
    text = path.read_text(encoding="utf-8")
    path.unlink()
    path.write_text("X" + text[1:], encoding="utf-8")
    assert findings(place, "target:integrity") == {}
    assert findings(place, "target:integrity", deep=True)["target:integrity"][0]["code"] == "install-incomplete"


def test_a_model_with_other_content_is_told_with_the_one_command_that_looks_at_content(place: Place) -> None:
    """A plain `imprint setup` compares sizes alone, so it would leave such a model as it is."""
    (found,) = diagnose(place.context, DoctorOptions(ids=("model:files",), deep=True)).data["findings"]
    assert (found["code"], found["fix"]) == ("model-damaged", "`imprint setup --repair`")


@pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b'{"schema": "one"}', b"\xff\xfe", b"{" * 100_000])
def test_a_damaged_state_file_is_told_and_left_as_it_is(place: Place, content: bytes) -> None:
    place.home.current.write_bytes(content)
    found = findings(place)
    assert found["state:files"][0]["code"] == "state-damaged"
    assert found["target:interpreter"][0]["code"] == "not-installed"
    assert place.home.current.read_bytes() == content
    provision(place)
    assert next(place.home.data.glob("current.json.corrupt-*")).read_bytes() == content
    assert findings(place) == {}


def test_newer_state_is_told_and_left_alone(place: Place) -> None:
    content = json.dumps({"schema": 99})
    place.home.verdicts.parent.mkdir(exist_ok=True)
    place.home.verdicts.write_text(content, encoding="utf-8")
    assert findings(place)["state:files"][0]["code"] == "state-newer"
    assert place.home.verdicts.read_text(encoding="utf-8") == content


def test_a_healthy_place_has_nothing_to_tell(place: Place) -> None:
    assert findings(place) == {}
    # The model that stands in has the right sizes alone, and who hashes it says that nothing can be embedded.
    assert findings(place, deep=True).keys() == {"runtime:embedding-device"}
