"""`embed` end to end in this process on a played worker: what it says, what it writes, what it refuses."""

import io
import json
import os
import signal
import sys
import tracemalloc
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from embedding.test_outputs import parse_npy
from imprint.context import Context
from imprint.embedding.catalogue import load_catalogue
from imprint.embedding.models import folder_of
from imprint.errors import ImprintError, InterruptedByUserError, InvalidValueError, UsageError
from imprint.operations.embed import EmbedOptions, embed
from imprint.paths import Home
from imprint.results import Result
from imprint.runtime.events import Event
from imprint.runtime.target import Manifest, Pointer, generation_folder, interpreter_of, manifest_to_json, write_pointer
from imprint.state import last_run
from imprint.state.files import write_json
from support.users import seen

PLAYED = Path(__file__).with_name("played_worker")
GENERATION = "cpu-1"


@dataclass
class Desk:
    """A home with a runtime and a model that are only there by name, and what a run said."""

    home: Home
    environ: dict[str, str]
    events: list[Event] = field(default_factory=list)
    stdout: io.BytesIO = field(default_factory=io.BytesIO)

    def embed(
        self,
        *texts: str,
        stdin: bytes = b"",
        flags: dict[str, str] | None = None,
        **options: Any,  # noqa: ANN401 - fields of the options
    ) -> Result[Any]:
        """Run the operation."""
        return embed(
            Context(self.home, self.environ, flags or {}),
            EmbedOptions(texts=texts, **options),
            self.events.append,
            stdin=lambda: io.BytesIO(stdin),
            stdout=self.stdout,
            worker_package=PLAYED,
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    home = Home(tmp_path / "home é")
    prefix = generation_folder(home, GENERATION)
    interpreter_of(prefix).parent.mkdir(parents=True)
    interpreter_of(prefix).symlink_to(sys.executable)
    (prefix / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n", encoding="utf-8")
    manifest = Manifest(GENERATION, "cpu", "1.31.1", {}, "3.11.7", sys.executable, None, "2026-01-01T00:00:00Z", {})
    write_json(prefix / "manifest.json", manifest_to_json(manifest), within=home.root)
    write_pointer(home, Pointer(GENERATION, "2026-01-01T00:00:00Z"))
    catalogue = load_catalogue()
    model = catalogue.model(catalogue.default)
    folder_of(home, model.name).mkdir(parents=True)
    for file in model.files:
        path = folder_of(home, model.name) / file.name
        path.touch()
        os.truncate(path, file.size)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("IMPRINT_", "PYTHON"))}
    return Desk(home, environ)


def rows(data: bytes) -> list[tuple[int, float]]:
    parsed = [json.loads(line) for line in data.splitlines()]
    return [(row["index"], row["embedding"][0]) for row in parsed]


def test_texts_become_rows_and_the_first_words_say_where(desk: Desk) -> None:
    result = desk.embed("four", "", "ünïcode")
    assert rows(desk.stdout.getvalue()) == [(0, 4.0), (1, 0.0), (2, 9.0)]
    assert desk.events[0].message.startswith("embeddings run on the CPU (ONNX Runtime 1.31.1)")
    assert result.ok
    noted = last_run.read(desk.home)
    assert noted is not None
    assert (noted.asked, noted.provider, noted.generation) == ("cpu", "CPUExecutionProvider", GENERATION)
    assert {name: result.data[name] for name in ("texts", "dims", "runs_on", "device", "output", "format")} == {
        "texts": 3,
        "dims": 384,
        "runs_on": "cpu",
        "device": None,
        "output": None,
        "format": "jsonl",
    }


@pytest.mark.parametrize(
    ("stdin", "form", "lengths"),
    [(b"a\n\nccc", "lines", [1, 0, 3]), (b'"a"\n{"text": "bb"}\n', "jsonl", [1, 2]), (b"", "lines", [])],
)
def test_standard_input_is_read_in_either_format(desk: Desk, stdin: bytes, form: str, lengths: list[int]) -> None:
    desk.embed(stdin=stdin, input="-", input_format=form)
    assert [length for _, length in rows(desk.stdout.getvalue())] == lengths


def test_a_file_becomes_an_npy_file(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "texts").write_bytes(b"line\n" * 5000)
    result = desk.embed(input=str(tmp_path / "texts"), output=tmp_path / "rows.npy", format="npy")
    shape, data = parse_npy((tmp_path / "rows.npy").read_bytes())
    assert (shape, len(data)) == ((5000, 384), 5000 * 384 * 4)
    assert desk.stdout.getvalue() == b""
    assert result.data["texts"] == 5000


def test_a_run_that_is_ended_leaves_no_half_file(desk: Desk, tmp_path: Path) -> None:
    """SIGTERM, as a service manager or `timeout` sends it, cleans up as Ctrl-C does."""
    options = EmbedOptions(texts=("a",), output=tmp_path / "out.npy", format="npy")
    context = Context(desk.home, desk.environ, {})
    with pytest.raises(InterruptedByUserError):
        embed(
            context,
            options,
            lambda _: os.kill(os.getpid(), signal.SIGTERM),
            stdin=io.BytesIO,
            stdout=desk.stdout,
            worker_package=PLAYED,
        )
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == []


def test_an_interrupt_keeps_what_was_done_and_says_where(desk: Desk, tmp_path: Path) -> None:
    """Texts that are done before the interrupt comes; how many is a matter of time."""

    def interrupt(event: Event) -> None:
        if event.event == "progress" and not list(tmp_path.glob("*.partial")):
            os.kill(os.getpid(), signal.SIGINT)

    (tmp_path / "texts").write_bytes(b"x\n" * 100_000)
    options = EmbedOptions(input=str(tmp_path / "texts"), output=tmp_path / "out.jsonl")
    with pytest.raises(InterruptedByUserError) as caught:
        embed(
            Context(desk.home, desk.environ, {}),
            options,
            interrupt,
            stdin=io.BytesIO,
            stdout=desk.stdout,
            worker_package=PLAYED,
        )
    assert not (tmp_path / "out.jsonl").exists()
    kept = tmp_path / "out.jsonl.partial"
    if kept.exists():
        indexes = [index for index, _ in rows(kept.read_bytes())]
        assert indexes == list(range(len(indexes)))
        assert f"the vectors of the first {len(indexes)} texts are in `{kept}`" in caught.value.message


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_names_of_standard_output_are_standard_output(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = desk.embed("four", output=Path(name))
    assert rows(desk.stdout.getvalue()) == [(0, 4.0)]
    assert result.data["output"] is None
    assert not Path("-").exists()


@pytest.mark.parametrize("kind", ["same", "relative", "link", "hard link"])
@pytest.mark.parametrize("form", ["jsonl", "npy"])
def test_the_input_is_never_the_output(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    texts, output = tmp_path / "texts", tmp_path / "other name"
    texts.write_bytes(b"precious\n")
    if kind == "link":
        output.symlink_to("texts")
    elif kind == "hard link":
        output.hardlink_to(texts)
    else:
        output = Path("texts") if kind == "relative" else texts
    with pytest.raises(UsageError, match="the same file as the input") as caught:
        desk.embed(input=str(texts), output=output, format=form)
    assert caught.value.hint == "write the vectors to another file"
    assert texts.read_bytes() == b"precious\n"


@pytest.mark.parametrize(
    "name",
    ["config.toml", "secrets.toml", "setup.lock", ".imprint-home", "data/current.json", "models/x.npy", "link/x"],
)
def test_vectors_never_take_the_place_of_imprints_own_files(desk: Desk, tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to(desk.home.data)
    path = tmp_path / name if name.startswith("link") else desk.home.root / name
    before = seen(desk.home.root)
    with pytest.raises(UsageError) as caught:
        desk.embed("a text", output=path)
    assert f"`{path}`" in caught.value.message
    assert caught.value.hint
    assert seen(desk.home.root) == before


def test_the_input_is_not_appended_to_through_standard_output(desk: Desk, tmp_path: Path) -> None:
    """`embed --input F >>F` would never end."""
    (tmp_path / "texts").write_bytes(b"precious\n")
    with (tmp_path / "texts").open("ab") as stdout, pytest.raises(UsageError, match="standard output"):
        embed(
            Context(desk.home, desk.environ, {}),
            EmbedOptions(input=str(tmp_path / "texts")),
            desk.events.append,
            stdin=io.BytesIO,
            stdout=stdout,
            worker_package=PLAYED,
        )
    assert (tmp_path / "texts").read_bytes() == b"precious\n"


def test_how_many_texts_there_are_is_said_where_it_is_known(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "texts").write_bytes(b"a\nb\nc")
    desk.embed(input=str(tmp_path / "texts"))
    desk.embed(stdin=b"a\n", input="-")
    desk.embed("a", "b")
    assert [event.total for event in desk.events if event.event == "start"] == [3, None, 2]


def test_no_texts_are_an_empty_array(desk: Desk, tmp_path: Path) -> None:
    desk.embed(input="-", output=tmp_path / "rows.npy", format="npy")
    assert parse_npy((tmp_path / "rows.npy").read_bytes()) == ((0, 384), b"")


def test_invalid_utf8_is_refused_with_its_line_and_no_file(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="standard input, line 2: not valid UTF-8"):
        desk.embed(stdin=b"a\n\xc3\n", input="-", output=tmp_path / "rows")
    assert not (tmp_path / "rows").exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, UsageError),
        ({"texts": ("a",), "input": "-"}, UsageError),
        ({"input": "/no/such/file"}, UsageError),
        ({"texts": ("a",), "format": "csv"}, InvalidValueError),
        ({"texts": ("a",), "input_format": "csv"}, InvalidValueError),
        ({"texts": ("a",), "flags": {"model.name": "all-minilm"}}, InvalidValueError),
        ({"texts": ("a",), "flags": {"model.max_tokens": "513"}}, InvalidValueError),
        ({"texts": ("a",), "flags": {"model.file": "nonesuch.onnx"}}, InvalidValueError),
    ],
)
def test_what_cannot_be_done_is_refused(desk: Desk, options: dict[str, Any], error: type[ImprintError]) -> None:
    with pytest.raises(error):
        desk.embed(*options.pop("texts", ()), **options)
    assert desk.stdout.getvalue() == b""


def test_without_a_runtime_or_a_model_setup_is_named(desk: Desk) -> None:
    for folder, what in ((desk.home.models, "model"), (desk.home.data, "runtime")):
        folder.rename(folder.with_name("gone"))
        with pytest.raises(ImprintError, match=what) as caught:
            desk.embed("a")
        assert caught.value.hint == "run `imprint setup`"
        folder.with_name("gone").rename(folder)


def test_a_gpu_that_is_required_and_not_planned_is_an_error_with_the_way(desk: Desk) -> None:
    with pytest.raises(ImprintError, match=r"model\.device is cpu") as caught:
        desk.embed("a", require_gpu=True)
    assert caught.value.specific_code == "device-cpu"
    assert "--device gpu" in str(caught.value.hint)
    assert desk.stdout.getvalue() == b""


def test_a_hundred_thousand_texts_on_standard_input_stay_out_of_memory(desk: Desk, tmp_path: Path) -> None:
    """Their vectors are 154 MB; this process may take a tenth of that."""
    tracemalloc.start()
    try:
        result = desk.embed(stdin=b"x\n" * 100_000, input="-", output=tmp_path / "rows.npy", format="npy")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.data["texts"] == 100_000
    assert (tmp_path / "rows.npy").stat().st_size == 128 + 100_000 * 384 * 4
    assert peak < 15_000_000
