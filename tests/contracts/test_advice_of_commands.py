"""What a person typed and what would have been right: each command says so, with a command that works."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from contracts.cases import MACHINES
from imprint.context import Context
from imprint.errors import UsageError
from imprint.operations.config import set_key
from imprint.operations.embed import EmbedOptions, text_that_is_a_file
from imprint.operations.plan import PlanOptions, plan
from imprint.operations.rollback import rollback
from imprint.operations.setup import SetupOptions, setup
from imprint.paths import Home
from imprint.results import Result
from imprint.situation.documents import read_machine

GPU_MACHINE = str(next(path for path in sorted(MACHINES.iterdir()) if '"8.' in path.read_text("utf-8")))


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(Home(tmp_path / "home"), {}, {})


def dry(context: Context, flags: dict[str, str] | None = None, **options: Any) -> Result[Any]:  # noqa: ANN401
    return setup(Context(context.home, {}, flags or {}), SetupOptions(dry_run=True, **options), lambda _: None)


def test_a_required_gpu_that_nobody_asked_for_is_answered_with_the_command(context: Context) -> None:
    (error,) = dry(context, require_gpu=True).errors
    assert error.code == "device-cpu"
    assert error.message == "a GPU is required, but none is planned: model.device is cpu"
    assert error.hint is not None
    assert error.hint.startswith("run `imprint setup --device gpu --require-gpu`, or ")
    assert "`imprint config set model.device gpu`" in error.hint


@pytest.mark.parametrize("python", [{"version": "3.13.0t", "abi": None}, {"version": "3.13.0", "abi": "cp313t"}])
def test_a_document_of_a_free_threaded_python_is_planned_with_the_warning(
    context: Context, tmp_path: Path, python: dict[str, str | None]
) -> None:
    document = tmp_path / "machine.json"
    document.write_text(json.dumps({**json.loads(Path(GPU_MACHINE).read_text("utf-8")), "python": python}), "utf-8")
    warnings = plan(context, PlanOptions(machine=str(document))).warnings
    assert [warning.code for warning in warnings] == ["python-abi-no-wheel"]


def test_the_command_keeps_what_was_asked_for(context: Context) -> None:
    options: dict[str, Any] = {"repair": True, "offline": True, "find_links": Path("/w ls")}
    (error,) = dry(context, require_gpu=True, **options).errors
    command = "`imprint setup --device gpu --require-gpu --repair --offline --find-links '/w ls'`"
    assert command in str(error.hint)


def test_a_bootstrap_is_told_its_own_command(context: Context) -> None:
    (error,) = dry(context, require_gpu=True, command="imprint bootstrap").errors
    assert "`imprint bootstrap --device gpu --require-gpu`" in str(error.hint)


def test_a_dry_run_ends_with_the_command_that_would_do_it(context: Context) -> None:
    line = dry(context).data["status"]["line"]
    assert "`imprint setup` would install cpu" in line
    document = read_machine(GPU_MACHINE, lambda: b"")
    elsewhere = dry(context, {"model.device": "gpu"}, machine=document, document="a file.json")
    told = "`imprint setup --for 'a file.json' --device gpu` would install"
    assert told in elsewhere.data["status"]["line"]


@pytest.mark.parametrize("flags", [{"model.gpu_device": "0"}, {"model.gpu_device": "0", "model.device": "cpu"}])
def test_a_gpu_that_is_chosen_while_the_cpu_is_configured_is_told(context: Context, flags: dict[str, str]) -> None:
    told = dry(context, flags).warnings
    told += plan(Context(context.home, {}, flags), PlanOptions()).warnings
    assert {(one.code, one.message) for one in told} == {
        ("gpu-device-unused", "`--gpu-device 0` has no effect while model.device is cpu")
    }
    assert all("--device gpu" in str(one.hint) for one in told)
    assert len(told) == 2


@pytest.mark.parametrize("flags", [{}, {"model.gpu_device": "auto"}, {"model.gpu_device": "0", "model.device": "auto"}])
def test_nothing_is_told_where_it_has_an_effect(context: Context, flags: dict[str, str]) -> None:
    assert "gpu-device-unused" not in {
        one.code for one in plan(Context(context.home, {}, flags), PlanOptions()).warnings
    }


def test_config_set_says_that_a_chosen_gpu_waits_for_the_device(context: Context) -> None:
    (told,) = [one for one in set_key(context, "model.gpu_device", "0").warnings if one.code == "gpu-device-unused"]
    assert told.message == "model.gpu_device has no effect while model.device is cpu"
    assert told.hint == "to use that GPU, also run `imprint config set model.device gpu`"
    assert not set_key(context, "model.gpu_device", "auto").warnings


def test_a_text_that_is_a_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my texts.txt").write_text("one\ntwo\n", encoding="utf-8")
    told = text_that_is_a_file(EmbedOptions(texts=("my texts.txt",)))
    assert told is not None
    assert told.code == "text-is-a-file"
    assert told.message == "`my texts.txt` is a file, but it was embedded as text"
    assert told.hint == "to embed the lines of the file, use `imprint embed --input 'my texts.txt'`"
    Path("other").touch()
    assert text_that_is_a_file(EmbedOptions(texts=("my texts.txt", "other"))) is not None
    for texts in (("a text",), ("my texts.txt", "a text"), (".",), ("x" * 5000,), ("\0",), ("",), ()):
        assert text_that_is_a_file(EmbedOptions(texts=texts)) is None


@pytest.mark.parametrize("wrong", [b"{", b"[1]", b"\xff\xfe", b'{"machine": 1}'])
def test_a_wrong_document_of_verdicts_is_not_called_a_machine_document(
    context: Context, tmp_path: Path, wrong: bytes
) -> None:
    (tmp_path / "wrong").write_bytes(wrong)
    with pytest.raises(UsageError) as caught:
        plan(context, PlanOptions(machine=GPU_MACHINE, verdicts=str(tmp_path / "wrong")))
    told = f"{caught.value.message} {caught.value.hint}"
    assert "machine" not in str(caught.value.hint)
    assert "data/gpu_state.json" in str(caught.value.hint), told


def test_a_wrong_machine_document_is_told_who_prints_one(context: Context) -> None:
    with pytest.raises(UsageError) as caught:
        plan(context, PlanOptions(machine="-", stdin=lambda: io.BytesIO(json.dumps([1]).encode()).read()))
    assert "`imprint machine`" in str(caught.value.hint)


def test_no_hint_speaks_of_generations(context: Context) -> None:
    with pytest.raises(Exception, match="no previous runtime") as caught:
        rollback(context)
    assert "generation" not in str(getattr(caught.value, "hint", ""))
