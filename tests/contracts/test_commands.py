"""The contract of every command: one JSON document, the right exit code, documented data, no traceback."""

from pathlib import Path

import pytest
import typer

from contracts.cases import CASES, Case
from contracts.runner import Ran, run_cli
from contracts.shapes import SHAPES, problems
from imprint_cli.app import build
from imprint_cli.machine import STREAMING
from imprint_cli.registry import COMMANDS, words_of


def leaves() -> set[str]:
    """Return every command that can be called, `config get` and the like included."""
    application = typer.main.get_command(build(COMMANDS))
    found: set[str] = set()
    for name, command in vars(application)["commands"].items():
        inner = vars(command).get("commands")
        found |= {f"{name} {member}" for member in inner} if inner else {name}
    return found


def run_case(case: Case, tmp_path: Path, *more: str) -> Ran:
    """Put the case's files into a new home and run it."""
    home = tmp_path / "my hömé"
    for name, content in case.files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(content)
    ran = run_cli(home, [*case.arguments, *more], stdin=case.stdin, environ=case.environ)
    assert "Traceback" not in ran.err
    for name, content in case.files.items():
        if case.code == 3:
            assert (home / name).read_bytes() == content, "what cannot be read is left as it is"
    return ran


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_json(case: Case, tmp_path: Path) -> None:
    """The envelope, the data's shape and the exit code are as documented; stderr stays empty."""
    ran = run_case(case, tmp_path, "--json")
    document = ran.document() if " ".join(case.arguments[:1]) not in STREAMING else ran.lines()[-1]
    assert problems(document, SHAPES["result" if "event" in document else "envelope"]) == []
    assert (ran.code, ran.err) == (case.code, "")
    assert document["command"] == (case.command or " ".join(words_of(case.arguments, COMMANDS)))
    assert document["ok"] is (not document["errors"])
    first = document["errors"][0]["code"] if document["errors"] else None
    assert first == case.error
    if case.shape is None:
        assert document["data"] == {}
    else:
        assert problems(document["data"], SHAPES[case.shape]) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_text(case: Case, tmp_path: Path) -> None:
    """Without `--json` the exit code is the same; errors are lines on stderr, results on stdout."""
    ran = run_case(case, tmp_path)
    assert ran.code == case.code
    assert "\x1b" not in ran.out + ran.err
    if case.error is None:
        assert "error:" not in ran.err
    else:
        assert any(line.startswith("error: ") for line in ran.err.splitlines())
    if case.kind == "refusal":
        assert ran.out == ""
        assert "hint: " in ran.err


def test_every_command_has_a_case_of_each_kind() -> None:
    """A new command is not done before success, failure and refusal are tried."""
    have = {(" ".join(words_of(case.arguments, COMMANDS)), case.kind) for case in CASES}
    without = {
        (command, kind)
        for command in leaves()
        for kind in ("success", "failure", "refusal")
        if (command, kind) not in have
    }
    assert without == EXEMPT


EXEMPT = {
    # It reads nothing, so nothing can fail.
    ("config path", "failure"),
    # Needs a runtime, which needs the network: tests/contracts/test_provisioned.py.
    ("status", "success"),
    ("check", "success"),
    ("rollback", "success"),
    ("bundle", "success"),
    ("embed", "success"),
    ("bootstrap", "success"),
    ("model path", "success"),
}


def test_a_gpu_that_cannot_be_had_is_a_warning_of_setup(tmp_path: Path) -> None:
    """On a machine without a GPU the CPU is planned and setup says why; with `--require-gpu` it refuses."""
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    ran = run_cli(tmp_path / "home", ["setup", "--dry-run", "--device", "gpu", "--json"], environ=hidden)
    result = ran.lines()[-1]
    assert (ran.code, result["ok"]) == (0, True)
    assert result["data"]["plan"]["reason"] in result["warnings"][0]["message"]
    ran = run_cli(tmp_path / "home", ["setup", "--dry-run", "--device", "gpu", "--require-gpu"], environ=hidden)
    assert ran.code == 1
    assert "error: " in ran.err
