"""What people read: colour rules, sizes, tables, progress, and a question that is never asked without a terminal."""

import io

import pytest

from imprint.errors import UsageError
from imprint.operations.setup import SetupResult
from imprint.planning.model import Installed, Note, Plan, Refusal
from imprint.provisioning.downloads import Download
from imprint.runtime.events import Event
from imprint.runtime.place import EnvironmentChanges, Replaced, Requirer
from imprint.runtime.verdict import Seen, decide
from imprint.situation.status import status_of
from imprint.sizes import in_units
from imprint.values import replace
from imprint_cli import human, provision, render
from imprint_cli.progress import HEARTBEAT_SECONDS, Progress


@pytest.mark.parametrize(
    ("environ", "is_tty", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_colour(environ: dict[str, str], is_tty: bool, expected: bool) -> None:
    assert human.wants_colour(environ, is_tty=is_tty) is expected


def test_sizes_and_tables() -> None:
    sizes = [None, 0, 999, 1000, 23_800_000, 1_363_000_000, 2_500_000_000_000]
    assert [in_units(size) for size in sizes] == ["unknown", "0 B", "999 B", "1.0 kB", "24 MB", "1.4 GB", "2.5 TB"]
    assert human.table(["a", "name"], [["1", "x"], ["22", "yy"]]) == "a   name\n1   x\n22  yy"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_progress_without_a_terminal_is_one_line_a_step_and_a_heartbeat() -> None:
    now = [0.0]
    stream = io.StringIO()
    progress = Progress(stream, clock=lambda: now[0])
    progress(Event("start", "download", "getting packages"))
    for second in (1.0, HEARTBEAT_SECONDS + 1, HEARTBEAT_SECONDS + 2):
        now[0] = second
        progress(Event("progress", "download", "getting packages", 5_000_000, 40_000_000))
    progress(Event("warning", "check", "odd"))
    progress(Event("done", "download", "packages are here"))
    progress.close()
    assert stream.getvalue() == (
        "download: getting packages (5.0 MB of 40 MB)\nwarning: odd\ndownload: packages are here\n"
    )


@pytest.mark.parametrize(
    ("total", "shown"),
    [
        (100_000, "(1700 of 100000, 170/s, 10 min left)"),
        (None, "(1700, 170/s)"),
        (1720, "(1700 of 1720, 170/s, 0 s left)"),
    ],
)
def test_what_counts_items_says_how_fast_and_how_long(total: int | None, shown: str) -> None:
    now = [5.0]
    stream = io.StringIO()
    progress = Progress(stream, clock=lambda: now[0])
    progress(Event("start", "embed", "texts embedded", 0, total))
    now[0] = 15.0
    progress(Event("progress", "embed", "texts embedded", 1700, total))
    assert stream.getvalue() == f"embed: texts embedded {shown}\n"


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0 s"), (89, "89 s"), (91, "2 min"), (7500, "2 h 5 min")])
def test_durations(seconds: float, said: str) -> None:
    assert human.duration(seconds) == said


def test_progress_on_a_terminal_redraws_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    progress = Progress(stream, clock=lambda: 0.0)
    progress(Event("start", "embed", "x" * 500, 1, 2))
    progress(Event("progress", "embed", "too soon", 2, 2))
    progress(Event("done", "embed", "all"))
    assert "too soon" not in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[Kembed: all\n")
    assert max(len(line) for line in stream.getvalue().replace("\r\x1b[K", "\n").split("\n")) < 500


def test_a_large_download_is_refused_where_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan("cuda13", "cuda13.txt", "1.31.1", None, "gpu-native", "r", download_bytes=1_363_000_000)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(UsageError) as raised:
        provision.ask(plan)
    assert "1.4 GB" in raised.value.message
    assert "--yes" in str(raised.value.hint)


@pytest.mark.parametrize(("answer", "agreed"), [("\n", True), ("y\n", True), ("Yes\n", True), ("n\n", False)])
def test_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch, answer: str, agreed: bool) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", Terminal())
    plan = Plan("cuda13", "cuda13.txt", "1.31.1", None, "gpu-native", "r")
    assert provision.ask(plan) is agreed


def test_an_end_of_input_is_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(""))
    monkeypatch.setattr("sys.stderr", Terminal())
    assert not provision.ask(Plan("cuda13", "cuda13.txt", "1.31.1", None, "gpu-native", "r"))


PLAN = Plan(
    "cpu",
    None,
    "1.31.1",
    None,
    "driver-too-old",
    "the driver is too old",
    "install driver 580",
    refused=tuple(Refusal(build, "driver-too-old", "a", "h") for build in ("cuda13", "cuda12")),
    notes=(Note("n", "a note"),),
    download_bytes=1,
    installed_bytes=2,
    pending=True,
)


def test_a_plan_reads_decision_first_and_groups_what_was_refused_alike() -> None:
    lines = render.render_plan(PLAN).splitlines()
    assert lines[0] == "plan: cpu 1.31.1: the driver is too old"
    assert "hint: install driver 580" in lines
    assert "not cuda13, cuda12: a (driver-too-old)" in lines
    assert "note: a note" in lines
    assert lines[-1] == "installed: nothing; change pending"


def test_a_plan_names_what_is_installed_and_one_sum_for_the_download() -> None:
    download = Download.of(40_000_000, 5_000_000, 23_000_000, 133_000_000)
    lines = render.render_plan(replace(PLAN, installed=Installed(None, "1.22.0")), download).splitlines()
    assert lines[-1] == "installed: ONNX Runtime 1.22.0, which is not one of Imprint's builds; change pending"
    (told,) = [line for line in lines if line.startswith("download")]
    parts = "40 MB for the build, 5.0 MB for other packages, 23 MB for the model"
    assert told == f"download: at most 68 MB: {parts}; on disk: about 133 MB"


def test_a_machine_without_a_build_still_gets_a_plan_to_read() -> None:
    text = render.render_plan(replace(PLAN, build=None, version=None, refused=(), notes=(), pending=False))
    assert text.startswith("plan: no build: ")
    assert "download" not in text


def test_a_dry_run_says_what_will_go_and_a_run_what_went() -> None:
    requirer = Requirer("a", "1", "onnxruntime", "x", satisfied=True, same_name=True)
    gone = Replaced("onnxruntime", "1.26.0", None, "another build")
    environment = EnvironmentChanges("/v", (gone,), (requirer,), (), ("b",), False, None, 5)
    status = status_of(decide(Seen(PLAN)))
    ended = SetupResult(PLAN, None, status, (), 0, (), environment=environment)
    done, dry = provision.render_setup(ended), provision.render_setup(replace(ended, download=None))
    assert ["removed: 5 B" in done, "it has x" in done, "removed files that no package owns: 1" in done] == [True] * 3
    assert ["to be removed: 5 B" in dry, "it will get x" in dry, "owns, to be removed: 1" in dry] == [True] * 3
