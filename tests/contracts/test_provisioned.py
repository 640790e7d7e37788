"""The contract on a real runtime: every command that needs one, on real wheels and the real model."""

from pathlib import Path

import pytest

from contracts.runner import Ran, run_cli
from contracts.shapes import SHAPES, problems

pytestmark = pytest.mark.slow

TEXTS = b"one text\n\nanother text\n"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """Set up once, and give the home and how that run ended."""
    home = tmp_path_factory.mktemp("place") / "my hömé"
    return home, run_cli(home, ["setup", "--yes", "--json"], timeout=600)


def data_of(home: Path, shape: str, *arguments: str, code: int = 0) -> dict[str, object]:
    """Run a command with `--json` and return its data, checked against its shape."""
    ran = run_cli(home, [*arguments, "--json"], timeout=120)
    assert ran.code == code
    assert all(line.startswith("embed: ") for line in ran.err.splitlines())
    document = ran.document()
    assert problems(document, SHAPES["envelope"]) == []
    assert problems(document["data"], SHAPES[shape]) == []
    return dict(document["data"])


def test_setup_streams_events_and_ends_with_the_result(first: tuple[Path, Ran]) -> None:
    _, ran = first
    assert (ran.code, ran.err) == (0, "")
    *events, result = ran.lines()
    assert events
    assert [problem for event in events for problem in problems(event, SHAPES["event"])] == []
    assert problems(result, SHAPES["result"]) == []
    assert problems(result["data"], SHAPES["setup"]) == []
    assert result["data"]["status"]["runs_on"] == "cpu"
    assert result["data"]["check"]["outcome"] == "ok"
    assert any(change["name"] == "onnxruntime" for change in result["data"]["changes"])


@pytest.mark.parametrize("command", ["setup", "bootstrap"])
def test_a_second_run_needs_no_network_and_changes_nothing(first: tuple[Path, Ran], command: str) -> None:
    home, _ = first
    ran = run_cli(home, [command, "--offline"])
    assert ran.code == 0
    assert ran.out.count("\n") == 1
    assert "CPU" in ran.out
    result = run_cli(home, [command, "--offline", "--json"]).lines()[-1]
    assert problems(result["data"], SHAPES["setup"]) == []
    assert result["data"]["changes"] == []


def test_check_status_plan_and_doctor_agree(first: tuple[Path, Ran]) -> None:
    home, _ = first
    assert data_of(home, "check", "check")["outcome"] == "ok"
    status = data_of(home, "status", "status")
    plan = data_of(home, "plan", "plan", "--check")
    doctor = data_of(home, "doctor", "doctor", "--deep", "--strict")
    assert status["reason"] == plan["reason"]
    assert (status["runs_on"], doctor["runs_on"], plan["pending"]) == ("cpu", "cpu", False)


def test_texts_become_vectors(first: tuple[Path, Ran]) -> None:
    home, _ = first
    ran = run_cli(home, ["embed", "--input", "-"], stdin=TEXTS)
    assert ran.code == 0
    rows = ran.lines()
    assert [row["index"] for row in rows] == [0, 1, 2]
    assert [problem for row in rows for problem in problems(row, SHAPES["vector"])] == []
    assert all(len(row["embedding"]) == 384 for row in rows)
    assert all(abs(sum(x * x for x in row["embedding"]) - 1) < 1e-5 for row in rows)


def test_the_rest_that_needs_a_model(first: tuple[Path, Ran]) -> None:
    home, _ = first
    embedded = data_of(home, "embed", "embed", "a text", "--output", str(home.parent / "out.npy"), "--format", "npy")
    assert (embedded["texts"], embedded["runs_on"]) == (1, "cpu")
    assert Path(str(data_of(home, "model path", "model", "path")["path"])).is_dir()
    assert data_of(home, "model list", "model", "list")["models"]
