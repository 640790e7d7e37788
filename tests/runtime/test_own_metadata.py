"""A file that somebody put into the dist-info of a build is theirs: it never goes with the build."""

from __future__ import annotations

from pathlib import Path

import pytest

from imprint.errors import ImprintError, NotOursError
from imprint.runtime.foreign import placing
from runtime.test_placing import Place, distribution
from support.foreign import BASE, Foreign, Wheels, assert_exactly, make_wheels
from support.sandbox import run_in

INFO = "onnxruntime_gpu-1.26.0.dist-info"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return make_wheels(tmp_path_factory.mktemp("foreign wheels"))


@pytest.fixture
def foreign(tmp_path: Path, wheels: Wheels) -> Foreign:
    made = Foreign(tmp_path, wheels)
    made.create(*BASE, "onnxruntime-gpu==1.26.0")
    return made


def put(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("owned\n")
    return path


@pytest.mark.parametrize("name", ["notes.txt", "licenses/notes.txt", "a link", "a linked folder"])
def test_an_owners_file_in_metadata_that_goes_is_a_refusal_that_names_it(foreign: Foreign, name: str) -> None:
    info = foreign.packages / INFO
    mine = info / name
    if name.startswith("a link"):
        mine.symlink_to(foreign.packages / "userlib" if "folder" in name else "METADATA")
    else:
        put(mine)
    before = foreign.tree()
    for call in (foreign.prepare, foreign.setup):
        with pytest.raises(NotOursError) as caught:
            call("cpu")
        assert f"`{mine}`" in caught.value.message
        assert "onnxruntime-gpu" in caught.value.message
        assert caught.value.hint
    assert foreign.tree() == before
    mine.unlink()
    foreign.setup("cpu")
    assert_exactly(foreign, "cpu")


def test_what_installers_write_goes(foreign: Foreign) -> None:
    info = foreign.packages / INFO
    for name in ("uv_cache.json", "uv_build.json", "direct_url.json", "REQUESTED", "RECORDab12cd34.tmp", ".DS_Store"):
        (info / name).write_text("{}")
    (info / "empty").mkdir()
    foreign.setup("cpu")
    assert not info.exists()
    assert_exactly(foreign, "cpu")


def test_an_owners_file_stays_where_the_same_version_is_installed_again(foreign: Foreign) -> None:
    foreign.setup("cpu")
    mine = put(foreign.packages / "onnxruntime-1.31.1.dist-info" / "notes.txt")
    foreign.setup("cpu", repair=True)
    assert mine.read_text() == "owned\n"
    assert not foreign.prepare("cpu").pending


@pytest.mark.parametrize("record", [None, "", "onnxruntime/__init__.py,,\n"])
def test_a_damaged_record_does_not_make_a_licence_somebodys_own(foreign: Foreign, record: str | None) -> None:
    info = foreign.packages / INFO
    put(info / "licenses" / "LICENSE")
    (info / "RECORD").unlink()
    if record is not None:
        (info / "RECORD").write_text(record)
    foreign.setup("cpu")
    assert not info.exists()


def test_what_another_package_claims_in_there_is_no_reason_to_take_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    info = distribution(place.packages, "onnxruntime", "1.0", {"onnxruntime/__init__.py": "old"})
    distribution(place.packages, "plug", "1.0", {f"{info.name}/plug.txt": "theirs"})
    with pytest.raises(NotOursError, match=r"plug\.txt"):
        place.judge("onnxruntime")


def test_as_long_as_anything_of_it_is_left_its_record_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed midway leaves what tells the next one whose the rest is."""
    place = Place(tmp_path)
    info = distribution(place.packages, "onnxruntime", "1.0", {"onnxruntime/__init__.py": "old"})
    change = place.judge("onnxruntime")
    seen: list[tuple[set[str], bool]] = []
    discard = placing._discard

    def watched(change: placing.Change, path: Path) -> None:
        left = {each.name for each in info.iterdir()} if info.exists() else set()
        seen.append((left, "RECORD" in left))
        discard(change, path)

    monkeypatch.setattr(placing, "_discard", watched)
    placing.take_out(change, change.going[0])
    assert all(recorded for _, recorded in seen)
    assert not info.exists()


@pytest.mark.parametrize("name", ["onnxruntime_gpu-1.26.0", "onnxruntime_gpu-1.31.1", "userlib-1.0"])
@pytest.mark.parametrize("row", ["kept", "lost"])
def test_metadata_that_may_not_be_changed_leaves_nothing_of_ours(
    tmp_path: Path, wheels: Wheels, name: str, row: str
) -> None:
    def body() -> tuple[str, list[str]]:
        foreign = Foreign(tmp_path, wheels)
        foreign.create(*BASE, "onnxruntime-gpu==1.31.1" if name.endswith("1.31.1") else "onnxruntime-gpu==1.26.0")
        info = foreign.packages / f"{name}.dist-info"
        if row == "lost":
            lines = (info / "RECORD").read_text().splitlines(keepends=True)
            (info / "RECORD").write_text("".join(line for line in lines if ".dist-info/" not in line))
        info.chmod(0o555)
        before = foreign.tree()
        try:
            foreign.setup("cuda13" if name.endswith("1.31.1") else "cpu", repair=name.endswith("1.31.1"))
        except ImprintError as error:
            assert foreign.tree() == before
            how = error.specific_code
        else:
            how = "done"
        info.chmod(0o755) if info.exists() else None
        return how, [path.name for path in foreign.prefix.glob(".imprint-*")]

    how, left = run_in(tmp_path, body, plain=True)
    assert left == []
    assert how == ("environment-read-only" if "gpu" in name else "done")
