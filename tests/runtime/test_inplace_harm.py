"""What damaged, hostile and odd environments may lose: nothing. A run ends in exactly the plan, or refuses.

Everything runs in a sandbox that can write one folder alone, with canaries in it; `judge` looks at all of it.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from support.foreign import BASE, Wheels
from support.handmade import SERIES, Handmade, small_wheels
from support.hostile import Mess, own_more
from support.judge import Ending, judge
from support.sandbox import run_in

GPU = "onnxruntime_gpu-1.26.0.dist-info"
REFUSALS = {"interpreter-elsewhere", "interpreter-unusable", "not-an-environment"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return small_wheels(tmp_path_factory.mktemp("foreign wheels"))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    # Short, so that a row may lead far up without reaching the root.
    folder = tmp_path / "s"
    folder.mkdir()
    return folder


def ending_of(
    scratch: Path,
    wheels: Wheels,
    change: Callable[[Mess], object],
    operation: str = "cpu",
    *,
    pins: tuple[str, ...] = (),
) -> Ending:
    """Make an environment with the owner's packages and `pins`, change it, run an operation, demand all is well."""

    def body() -> tuple[Ending, list[str]]:
        mess = Mess(Handmade(scratch, wheels), random.Random(0))  # noqa: S311 - nothing here is left to chance
        mess.made.make()
        mess.own("userlib==1.0", "asks-for-runtime==2.0")
        mess.install(*BASE, *(pins or ("onnxruntime-gpu==1.26.0",)))
        own_more(mess)
        change(mess)
        return judge(mess.made, operation, mess.guarded(), mess.made.canaries())

    ended, problems = run_in(scratch, body)
    assert problems == [], ended.how
    return ended


def mostly_slow(values: Sequence[str], *fast: str) -> list[str | ParameterSet]:
    """Return parameters of which all but `fast` wait until there is time."""
    return [value if value in fast else pytest.param(value, marks=pytest.mark.slow) for value in values]


def rows(*added: str, info: str = GPU) -> Callable[[Mess], None]:
    return lambda mess: mess.made.add_rows_to(info, *added)


FOLDERS = [
    "..",
    ".",
    "own",
    "neighbour",
    "../../..",
    "../../../bin",
    "../../../../..",
    "../../../../neighbour",
    "own/..",
]
OUTSIDE = [
    *("../../../pyvenv.cfg", "../../../bin/python", "../../../bin/activate", "../../../../neighbour/lib/file.py"),
    *("own/data.txt", "./own//data.txt", "userlib/../own/data.txt", "../../../lib64"),
]


@pytest.mark.parametrize("operation", ["cuda13", pytest.param("cpu", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "row", mostly_slow([*FOLDERS, *OUTSIDE], "..", "own", "../../../bin/python", "./own//data.txt")
)
def test_a_row_that_names_no_file_of_its_own_takes_nothing(
    scratch: Path, wheels: Wheels, row: str, operation: str
) -> None:
    assert ending_of(scratch, wheels, rows(f"{row},,"), operation).how == "done"


@pytest.mark.parametrize("row", ["own", "../../../bin", "../../../../neighbour/lib/file.py", "own/data.txt"])
def test_rows_that_stay_are_said(scratch: Path, wheels: Wheels, row: str) -> None:
    ended = ending_of(scratch, wheels, rows(f"{row},,"), "cuda13")
    assert any(row in warning for warning in ended.warnings), ended.warnings


@pytest.mark.parametrize("row", mostly_slow(["x/y", "x/file.txt", "above", "x/link/file.txt", "x/y/sub"], "x/file.txt"))
def test_an_absolute_row_takes_nothing(scratch: Path, wheels: Wheels, row: str) -> None:
    assert ending_of(scratch, wheels, lambda mess: rows(f"{mess.made.scratch / row},,")(mess)).how == "done"


@pytest.mark.parametrize(
    "row",
    mostly_slow(
        ["link/..", "link/sub", "link/sub/f.txt", "link/file.txt", "link/../file.txt"], "link/..", "link/file.txt"
    ),
)
def test_a_row_through_a_link_takes_nothing(scratch: Path, wheels: Wheels, row: str) -> None:
    def change(mess: Mess) -> None:
        (mess.made.packages / "link").symlink_to(mess.made.scratch / "x" / "y")
        mess.protected.add("link")
        rows(f"{row},,")(mess)

    assert ending_of(scratch, wheels, change).how == "done"


@pytest.mark.parametrize(
    "row", mostly_slow(["own,,", "../../../../neighbour,,", "link/..,,", "own/data.txt,,"], "own,,")
)
def test_prune_takes_nothing_either(scratch: Path, wheels: Wheels, row: str) -> None:
    def change(mess: Mess) -> None:
        (mess.made.packages / "link").symlink_to(mess.made.scratch / "x" / "y")
        mess.protected.add("link")
        rows(row, info="nvidia_cufft-12.0.0.61.dist-info")(mess)

    pins = (*wheels.pins("cpu")[len(BASE) :], "tokenizers==0.23.3", "nvidia-cufft==12.0.0.61")
    ended = ending_of(scratch, wheels, change, "prune", pins=pins)
    assert ended.how == "done"
    assert ended.result is not None
    assert [change["name"] for change in ended.result.data["changes"]] == ["nvidia-cufft"]


ODD = {
    "NUL": "onnxruntime/a\0b,,",
    "nothing": ",,",
    "a very long name": f"{'x' * 4000},,",
    "a very long path": f"{'/'.join(['d' * 200] * 30)},,",
    "a line break": '"two\nlines",,',
    "a quote that never closes": '"onnxruntime/part1.py,,',
    "below a file": "onnxruntime/part1.py/below,,",
    "a size beyond all sizes": f"onnxruntime/part1.py,,{10**30}",
    "an option": "--cache-dir=x,,",
    "a loop": "loop/x,,",
}


@pytest.mark.parametrize("what", mostly_slow(sorted(ODD), "NUL", "a very long path", "a loop"))
def test_an_odd_row_is_no_hindrance(scratch: Path, wheels: Wheels, what: str) -> None:
    def change(mess: Mess) -> None:
        (mess.made.packages / "loop").symlink_to("loop")
        mess.protected.add("loop")
        rows(ODD[what])(mess)

    assert ending_of(scratch, wheels, change).how == "done"


def test_a_hundred_thousand_rows_are_no_hindrance(scratch: Path, wheels: Wheels) -> None:
    assert ending_of(scratch, wheels, rows(*(f"onnxruntime/none/{each}.py,," for each in range(100_000)))).how == "done"


@pytest.mark.parametrize(
    "how", ["a script that starts another", "a script that starts the one below", "a whole Python"]
)
def test_an_interpreter_of_another_place_is_refused(scratch: Path, wheels: Wheels, how: str) -> None:
    """The other environment, and the Python below both, are canaries here."""

    def change(mess: Mess) -> None:
        made, python = mess.made, mess.made.prefix / "bin" / "python"
        base = Path(os.path.realpath(python))
        other = made.scratch / "above" / "other"
        shutil.copytree(made.prefix, other, symlinks=True)
        python.unlink()
        if how == "a whole Python":
            shutil.copy2(base, python)
            for path in (base.parent.parent / "lib" / SERIES).iterdir():
                if path.name != "site-packages":
                    (made.prefix / "lib" / SERIES / path.name).symlink_to(path)
            (made.prefix / "pyvenv.cfg").write_text("")
            return
        target = other / "bin" / "python" if how == "a script that starts another" else base
        python.write_text(f'#!/bin/sh\nexec "{target}" "$@"\n')
        python.chmod(0o755)

    ended = ending_of(scratch, wheels, change, "cuda13")
    assert ended.how in REFUSALS
    assert "env mit ü" in ended.said


LINKS = {
    "onnxruntime": "owner's home/src/onnxruntime",
    "onnxruntime/capi": "owner's home/src/onnxruntime/capi",
    "nvidia": "shared/nvidia",
    "nvidia/cu13": "shared/nvidia/cu13",
    "tokenizers": "shared/packaging",
}


@pytest.mark.parametrize("name", mostly_slow(sorted(LINKS), "onnxruntime", "nvidia/cu13"))
def test_what_would_be_written_through_a_link_is_refused(scratch: Path, wheels: Wheels, name: str) -> None:
    def change(mess: Mess) -> None:
        path = mess.made.packages / name
        if path.is_dir():
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(mess.made.scratch / LINKS[name])
        mess.protected.add(name)

    ended = ending_of(scratch, wheels, change, "cuda13")
    assert ended.how == "not-ours"
    assert f"site-packages/{name}" in ended.said


def test_what_was_installed_through_a_link_is_not_removed_there(scratch: Path, wheels: Wheels) -> None:
    def change(mess: Mess) -> None:
        shared = mess.made.scratch / "x" / "nvidia"
        mess.install("nvidia-cublas==13.0.2.14")
        shutil.move(mess.made.packages / "nvidia", shared)
        (mess.made.packages / "nvidia").symlink_to(shared)
        mess.protected.add("nvidia")

    assert ending_of(scratch, wheels, change, "cpu").how in {"done", "not-ours"}


@pytest.mark.parametrize(
    "path", ["tokenizers/__init__.py", "tokenizers/notes.txt", "nvidia/cu13/lib/libcublas.so", "nvidia_cublas.txt"]
)
def test_files_that_nobody_claims_are_not_overwritten(scratch: Path, wheels: Wheels, path: str) -> None:
    ended = ending_of(scratch, wheels, lambda mess: mess.plant(path), "cuda13")
    assert ended.how == ("done" if path == "nvidia_cublas.txt" else "not-ours")
    assert path == "nvidia_cublas.txt" or path in ended.said


NO_BUILDS: dict[str, dict[str, str]] = {
    "onnxruntime-foo": {"__editable__.onnxruntime_foo-1.0.pth": "/nowhere\n"},
    "onnxruntime-stubs": {"onnxruntime-stubs/__init__.pyi": "x: int\n"},
    "onnxruntime-data": {"onnxruntime_data/weights.bin": "w\n"},
    "onnxruntime-empty": {},
    "onnxruntime-module": {"onnxruntime_module.py": "x = 1\n"},
}


@pytest.mark.parametrize("name", mostly_slow(sorted(NO_BUILDS), "onnxruntime-foo", "onnxruntime-stubs"))
def test_what_is_named_like_a_build_and_is_none_stays(scratch: Path, wheels: Wheels, name: str) -> None:
    def change(mess: Mess) -> None:
        mess.made.own(name, NO_BUILDS[name])
        mess.protect_recorded(name.replace("-", "_"))

    assert ending_of(scratch, wheels, change).how == "done"


KINDS = ["file", "relative link", "absolute link", "dangling link", "link outside"]


@pytest.mark.parametrize("kind", mostly_slow(KINDS, "relative link", "link outside"))
def test_what_a_staying_distribution_has_too_stays_what_it_is(scratch: Path, wheels: Wheels, kind: str) -> None:
    def change(mess: Mess) -> None:
        packages = mess.made.packages
        path = packages / "onnxruntime" / "shared.py"
        targets: dict[str, str | Path] = {
            "relative link": "../both/__init__.py",
            "absolute link": packages / "both" / "__init__.py",
            "dangling link": "nowhere",
            "link outside": mess.made.scratch / "x" / "file.txt",
        }
        mess.made.own("both", {"both/__init__.py": "x = 1\n"}, ["onnxruntime/shared.py,,"])
        path.write_text("shared\n") if kind == "file" else path.symlink_to(targets[kind])
        mess.protect_recorded("both")
        rows("onnxruntime/shared.py,,")(mess)

    assert ending_of(scratch, wheels, change, "cuda13").how == "done"


def _egg(mess: Mess, name: str, *, folder: bool) -> None:
    path = mess.made.packages / name
    header = "Metadata-Version: 1.0\nName: onnxruntime-gpu\nVersion: 1.20.0\n"
    if folder:
        path.mkdir()
        (path / "PKG-INFO").write_text(header)
        (path / "top_level.txt").write_text("own\nneighbour\n")
        (path / "installed-files.txt").write_text("../own/data.txt\n../neighbour\n")
    else:
        path.write_text(header)
    mess.protected.add(name)


@pytest.mark.parametrize("kind", ["a file", "a folder", "a link to a dist-info", "a link within"])
def test_metadata_that_no_wheel_has_is_refused_first(scratch: Path, wheels: Wheels, kind: str) -> None:
    def change(mess: Mess) -> None:
        packages = mess.made.packages
        if kind.startswith("a link"):
            place = mess.made.scratch / "x" if kind == "a link to a dist-info" else packages / "own"
            shutil.move(packages / GPU, place / "info")
            (packages / GPU).symlink_to(place / "info")
            mess.protected.add(GPU)
        else:
            _egg(mess, "onnxruntime_gpu-1.20.0-py3.11.egg-info", folder=kind == "a folder")

    ended = ending_of(scratch, wheels, change)
    assert ended.how not in {"done", "bug", "hang"}
    assert "onnxruntime_gpu-1." in ended.said or "onnxruntime-gpu" in ended.said


SPELLINGS = [
    *("./onnxruntime/plug.py", "onnxruntime//plug.py", "own/../onnxruntime/plug.py", "onnxruntime/./plug.py"),
    *(f"../../../lib/{SERIES}/site-packages/onnxruntime/plug.py", "ABSOLUTE"),
    f"../../../lib64/{SERIES}/site-packages/onnxruntime/plug.py",
]


@pytest.mark.parametrize("spelling", mostly_slow(SPELLINGS, "./onnxruntime/plug.py", "ABSOLUTE"))
def test_a_claim_counts_however_it_is_spelled(scratch: Path, wheels: Wheels, spelling: str) -> None:
    def change(mess: Mess) -> None:
        path = "onnxruntime/plug.py"
        row = spelling.replace("ABSOLUTE", str(mess.made.packages / path))
        mess.made.own("plug", {"plugged/__init__.py": ""}, [f"{row},,"])
        mess.plant(path)
        rows(f"{path},,")(mess)

    assert ending_of(scratch, wheels, change, "cuda13").how == "done"


@pytest.mark.parametrize("content", [b"own/\xe9.py,,\n", b"", b"\0" * 100, None])
def test_a_record_that_cannot_be_read_still_claims_what_is_near_it(
    scratch: Path, wheels: Wheels, content: bytes | None
) -> None:
    def change(mess: Mess) -> None:
        record = mess.made.info("own") / "RECORD"
        record.unlink()
        if content is not None:
            record.write_bytes(content)
        rows("own/__init__.py,sha256=x,6", "own/data.txt,sha256=x,2")(mess)

    assert ending_of(scratch, wheels, change, "cuda13").how == "done"


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 10**9)


SPECIAL: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a folder": Path.mkdir,
    "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "1 GB": _sparse,
    "a loop": lambda path: path.symlink_to(path.name),
}


@pytest.mark.parametrize("kind", mostly_slow(sorted(SPECIAL), "a FIFO"))
@pytest.mark.parametrize("name", mostly_slow(["RECORD", "METADATA", "INSTALLER"], "RECORD", "METADATA"))
@pytest.mark.parametrize("whose", [GPU, "own-1.0.dist-info"])
def test_metadata_that_is_no_plain_file_neither_hangs_nor_fills_memory(
    scratch: Path, wheels: Wheels, kind: str, name: str, whose: str
) -> None:
    def change(mess: Mess) -> None:
        path = mess.made.packages / whose / name
        path.unlink()
        SPECIAL[kind](path)

    ended = ending_of(scratch, wheels, change)
    assert ended.how not in {"bug", "hang"}


@pytest.mark.parametrize("kind", ["a FIFO", "a file"])
def test_a_dist_info_that_is_no_folder_is_no_distribution(scratch: Path, wheels: Wheels, kind: str) -> None:
    def change(mess: Mess) -> None:
        path = mess.made.packages / "onnxruntime.gpu-1.31.1.dist-info"
        os.mkfifo(path) if kind == "a FIFO" else path.touch()
        mess.protected.add(path.name)

    ended = ending_of(scratch, wheels, change)
    assert ended.how not in {"bug", "hang", "home-not-writable"}


@pytest.mark.parametrize("name", [".journal.json.1234abcd.tmp", ".journal.json.abc_1234.tmp"])
def test_what_a_kill_while_writing_leaves_goes(scratch: Path, wheels: Wheels, name: str) -> None:
    def body() -> list[str]:
        from imprint.runtime.foreign import journal

        made = Handmade(scratch, wheels)
        made.make()
        made.setup("cpu")
        folder = journal.store_of(made.home, made.prefix).folder
        (folder / name).write_text("{")
        made.setup("cuda13")
        return [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]

    assert run_in(scratch, body) == []


@pytest.mark.parametrize(
    "name", ["onnxruntime_gpu-1.20.0.dist-info", "onnxruntime.dist-info", "ONNXRuntime_GPU-1.dist-info"]
)
def test_metadata_of_another_in_a_folder_named_like_a_build_is_no_half_way(
    scratch: Path, wheels: Wheels, name: str
) -> None:
    def change(mess: Mess) -> None:
        shutil.copytree(mess.made.info("packaging"), mess.made.packages / name)

    assert ending_of(scratch, wheels, change, "cuda13").how not in {"bug", "hang", "integrity"}


@pytest.mark.parametrize("operation", ["cpu", "cpu repair", "cuda13", "prune"])
def test_a_record_that_is_cut_never_breaks_what_works(scratch: Path, wheels: Wheels, operation: str) -> None:
    """What the rest of it does not name is the build's all the same, while that stays."""

    def change(mess: Mess) -> None:
        mess.install("nvidia-cufft==12.0.0.61")
        record = mess.made.info("onnxruntime") / "RECORD"
        content = record.read_bytes()
        record.write_bytes(content[: len(content) // 2])

    pins = (*wheels.pins("cpu")[len(BASE) :], "tokenizers==0.23.3")
    ended = ending_of(scratch, wheels, change, operation, pins=pins)
    assert ended.how in {"done", "not-ours", "target-damaged"}


def test_a_loop_of_links_in_a_build_is_no_hindrance(scratch: Path, wheels: Wheels) -> None:
    def change(mess: Mess) -> None:
        (mess.made.packages / "onnxruntime" / "circle").symlink_to("circle")

    assert ending_of(scratch, wheels, change, "cuda13").how == "done"
