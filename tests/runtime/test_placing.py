"""A change is refused before it begins where it would write what is somebody else's; else it is done whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from imprint import touch
from imprint.errors import ImprintError
from imprint.runtime.distributions import claims, inventory
from imprint.runtime.distributions.metadata import InstalledDistribution, read_held
from imprint.runtime.foreign import judging, placing
from imprint.runtime.foreign.placing import Change

NEW = "EVB6Di9eadXfpApiob17buV-a82FxnybhDGzb_8hxDc"
"""The digest of the text "new", as RECORD writes it."""


def distribution(packages: Path, name: str, version: str, files: dict[str, str]) -> Path:
    """Write a distribution as an installer does, and return its dist-info."""
    info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    rows = []
    for path, content in files.items():
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (packages / path).write_text(content)
        rows.append(f"{path},sha256=x,{len(content)}")
    for file, content in (("METADATA", f"Name: {name}\nVersion: {version}\n"), ("INSTALLER", "uv")):
        (info / file).write_text(content)
        rows.append(f"{info.name}/{file},sha256=x,{len(content)}")
    (info / "RECORD").write_text("\n".join([*rows, f"{info.name}/RECORD,,", ""]))
    return info


class Place:
    """An environment, and a staged tree beside it."""

    def __init__(self, root: Path) -> None:
        self.prefix = root / "env"
        self.packages = self.prefix / "lib" / "python3.11" / "site-packages"
        self.staged = self.prefix / ".imprint-staged-x" / "lib" / "python3.11" / "site-packages"
        self.outside = root / "outside"
        for folder in (self.packages, self.staged, self.prefix / "bin", self.outside):
            folder.mkdir(parents=True)
        self.ground = claims.ground_of(self.prefix, self.packages)

    def held(self, packages: Path) -> tuple[InstalledDistribution, ...]:
        """Return what lies in a folder of packages."""
        return read_held(inventory.inspect(packages.parents[2]))

    def judge(self, *uninstall: str) -> Change:
        """Judge uninstalling these and installing what is staged."""
        staged = [(found, self.staged) for found in self.held(self.staged)]
        trash = self.prefix / ".imprint-staged-x" / "trash"
        trash.mkdir(exist_ok=True)
        return judging.judge(self.ground, self.held(self.packages), uninstall, staged, trash=trash)

    def carry_out(self, change: Change) -> None:
        """Do it, in the order in which a run does."""
        came = {coming.name for coming in change.coming}
        for coming in change.coming:
            replaced = [found for found in change.going if found.name == coming.name or found.is_build]
            placing.put_in(change, coming, replaced)
        for found in change.going:
            if found.name not in came and not found.is_build:
                placing.take_out(change, found)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path)
    files = {"onnxruntime/__init__.py": "new", "onnxruntime/capi/lib.so": "new"}
    distribution(found.staged, "onnxruntime", "2.0", files)
    return found


def a_linked_folder(place: Place) -> str:
    (place.packages / "onnxruntime").symlink_to(place.outside)
    return "onnxruntime"


def a_linked_folder_deeper(place: Place) -> str:
    (place.packages / "onnxruntime").mkdir()
    (place.packages / "onnxruntime" / "capi").symlink_to(place.outside)
    return "capi"


def a_link_to_a_folder_inside(place: Place) -> str:
    (place.packages / "elsewhere").mkdir()
    (place.packages / "onnxruntime").symlink_to("elsewhere")
    return "onnxruntime"


def a_dangling_link(place: Place) -> str:
    (place.packages / "onnxruntime").symlink_to(place.outside / "gone")
    return "onnxruntime"


def a_checkout_of_the_owners(place: Place) -> str:
    (place.packages / "onnxruntime" / "mine").mkdir(parents=True)
    (place.packages / "onnxruntime" / "mine" / "notes.txt").write_text("mine")
    return "notes.txt"


def an_unclaimed_file_at_the_very_place(place: Place) -> str:
    (place.packages / "onnxruntime").mkdir()
    (place.packages / "onnxruntime" / "__init__.py").write_text("mine")
    return "__init__.py"


def a_file_where_a_folder_is_needed(place: Place) -> str:
    (place.packages / "onnxruntime").write_text("mine")
    return "onnxruntime"


def a_folder_where_a_file_is_needed(place: Place) -> str:
    distribution(place.packages, "onnxruntime", "1.0", {"onnxruntime/capi/x.py": "old"})
    (place.packages / "onnxruntime" / "capi" / "lib.so").mkdir()
    return "lib.so"


def another_packages_file(place: Place) -> str:
    distribution(place.packages, "other", "1.0", {"onnxruntime/__init__.py": "theirs"})
    return "other"


def a_metadata_folder_that_is_none(place: Place) -> str:
    os.mkfifo(place.packages / "onnxruntime-2.0.dist-info")
    return "dist-info"


@pytest.mark.parametrize(
    "hinder",
    [
        *(a_linked_folder, a_linked_folder_deeper, a_link_to_a_folder_inside, a_dangling_link),
        *(a_checkout_of_the_owners, an_unclaimed_file_at_the_very_place, a_file_where_a_folder_is_needed),
        *(a_folder_where_a_file_is_needed, another_packages_file, a_metadata_folder_that_is_none),
    ],
)
def test_somebody_elses_files_are_a_refusal_that_names_them(place: Place, hinder: Callable[[Place], str]) -> None:
    named = hinder(place)
    with pytest.raises(ImprintError) as caught:
        place.judge("onnxruntime")
    assert caught.value.specific_code in {"not-ours", "shared-files"}
    assert named in caught.value.message
    assert caught.value.hint


def test_one_build_takes_the_place_of_another_and_of_its_rests(place: Place) -> None:
    old = {"onnxruntime/__init__.py": "old", "onnxruntime/only_old.py": "old", "onnxruntime/capi/lib.so": "old"}
    distribution(place.packages, "onnxruntime-gpu", "1.0", old)
    distribution(place.packages, "neighbour", "1.0", {"neighbour/__init__.py": "theirs", "shared/x.py": "theirs"})
    (place.packages / "onnxruntime" / "capi" / "lib.so.old").write_text("a rest")
    (place.packages / "neighbour" / "unrecorded.txt").write_text("theirs")
    change = place.judge("onnxruntime-gpu")
    place.carry_out(change)
    assert (place.packages / "onnxruntime" / "capi" / "lib.so").read_text() == "new"
    assert not (place.packages / "onnxruntime" / "only_old.py").exists()
    assert [info.name for info in sorted(place.packages.glob("onnx*.dist-info"))] == ["onnxruntime-2.0.dist-info"]
    assert (place.packages / "neighbour" / "unrecorded.txt").read_text() == "theirs"
    assert not [found for found in place.held(place.packages) if "missing" in found.problems]


def test_the_same_version_is_replaced_file_by_file(place: Place) -> None:
    info = distribution(place.packages, "onnxruntime", "2.0", {"onnxruntime/__init__.py": "damaged"})
    with (info / "RECORD").open("a") as record:
        record.write(f"{info.name}/stale.txt,sha256=x,5\n")
    (info / "stale.txt").write_text("stale")
    (info / "mine.txt").write_text("mine")
    place.carry_out(place.judge("onnxruntime"))
    assert (place.packages / "onnxruntime" / "__init__.py").read_text() == "new"
    assert sorted(path.name for path in info.iterdir()) == ["INSTALLER", "METADATA", "RECORD", "mine.txt"]


def test_a_package_that_leads_out_leaves_what_is_there(place: Place) -> None:
    (place.outside / "lib.so").write_text("theirs")
    (place.packages / "nvidia").symlink_to(place.outside)
    info = distribution(place.packages, "nvidia-cublas-cu12", "12.0", {})
    (info / "RECORD").write_text("nvidia/lib.so,sha256=x,6\n")
    change = place.judge("nvidia-cublas-cu12")
    assert [found.path for found in change.skipped] == ["nvidia/lib.so"]
    placing.take_out(change, change.going[0])
    assert (place.outside / "lib.so").read_text() == "theirs"
    assert not info.exists()


def test_a_stop_midway_leaves_metadata_that_says_so(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(place.packages, "onnxruntime", "1.0", {"onnxruntime/__init__.py": "old"})
    change = place.judge("onnxruntime")
    count = 0
    land = placing._land

    def stop(change: Change, source: Path, where: Path) -> None:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        land(change, source, where)

    monkeypatch.setattr(placing, "_land", stop)
    with pytest.raises(KeyboardInterrupt):
        place.carry_out(change)
    assert all("no-installer" in found.problems for found in place.held(place.packages))


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else "/"
        for path in sorted(folder.rglob("*"))
        if ".imprint-staged" not in str(path)
    }


@pytest.mark.parametrize("count", range(1, 16))
def test_whatever_fails_midway_everything_is_put_back(
    place: Place, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    old = {"onnxruntime/__init__.py": "old", "onnxruntime/sub/only_old.py": "old", "onnxruntime/capi/lib.so": "old"}
    distribution(place.packages, "onnxruntime-gpu", "1.0", old)
    cache = place.packages / "onnxruntime" / "sub" / "__pycache__"
    cache.mkdir()
    (cache / "only_old.cpython-311.pyc").write_text("compiled")
    before = tree(place.prefix)
    change = place.judge("onnxruntime-gpu")
    calls = 0
    move = touch.move

    def refuse(source: Path, target: Path, *, within: Path | touch.Fence) -> None:
        nonlocal calls
        calls += 1
        if calls == count:
            raise OSError(1, "operation not permitted", str(target))
        move(source, target, within=within)

    monkeypatch.setattr(touch, "move", refuse)
    try:
        place.carry_out(change)
    except OSError:
        placing.undo(change)
        assert tree(place.prefix) == before
    else:
        assert calls < count


def test_what_another_that_comes_takes_over_is_not_said_to_be_left(place: Place) -> None:
    info = distribution(place.packages, "onnxruntime", "1.0", {"onnxruntime/__init__.py": "old"})
    script = place.prefix / "bin" / "onnxruntime_test"
    (place.prefix / ".imprint-staged-x" / "bin").mkdir()
    for path in (script, place.prefix / ".imprint-staged-x" / "bin" / "onnxruntime_test"):
        path.write_text("new")
    for record in (info / "RECORD", place.staged / "onnxruntime-2.0.dist-info" / "RECORD"):
        digest = "J-wFY_JfQ-8jYAyy6JZW1G4wYZKiCWqgyVG5JXzK_qM" if "1.0" in str(record) else NEW
        record.write_text(record.read_text() + f"../../../bin/onnxruntime_test,sha256={digest},3\n")
    assert place.judge("onnxruntime").skipped == ()


STARTER = "#!{python}\n# -*- coding: utf-8 -*-\nimport sys\nfrom onnxruntime.tools.x import main\nsys.exit(main())\n"


@pytest.mark.parametrize("python", ["/usr/bin/python3", "/opt/v/bin/python"])
def test_a_script_that_nobody_claims_gives_way_to_one_that_starts_the_same(place: Place, python: str) -> None:
    for folder, content in (
        (place.prefix / "bin", STARTER.format(python=python)),
        (place.prefix / ".imprint-staged-x" / "bin", STARTER.format(python="/other")),
    ):
        folder.mkdir(exist_ok=True)
        (folder / "onnxruntime_test").write_text(content)
    record = place.staged / "onnxruntime-2.0.dist-info" / "RECORD"
    record.write_text(record.read_text() + "../../../bin/onnxruntime_test,sha256=x,3\n")
    assert place.judge().coming
    (place.prefix / "bin" / "onnxruntime_test").write_text("#!/bin/sh\necho mine\n")
    with pytest.raises(ImprintError, match="onnxruntime_test"):
        place.judge()


PAGE = "../../../share/man/man1/isympy.1"
"""What a wheel has besides packages and scripts: SymPy's lies there."""


def with_a_page(place: Place, text: str = "new") -> Path:
    """Let what is staged have a manual page, and return where that will lie."""
    staged = place.staged / PAGE
    staged.resolve().parent.mkdir(parents=True, exist_ok=True)
    staged.resolve().write_text(text)
    record = place.staged / "onnxruntime-2.0.dist-info" / "RECORD"
    record.write_text(record.read_text() + f"{PAGE},sha256={NEW},3\n")
    return place.prefix / "share" / "man" / "man1" / "isympy.1"


def test_a_manual_page_comes_with_its_package_and_goes_with_it(place: Place) -> None:
    page = with_a_page(place)
    place.carry_out(place.judge())
    assert page.read_text() == "new"
    change = place.judge("onnxruntime")
    assert change.skipped == ()
    placing.take_out(place.judge("onnxruntime"), change.going[0])
    assert not (place.prefix / "share").exists()


def test_a_manual_page_of_the_owners_is_not_written_over(place: Place) -> None:
    page = with_a_page(place)
    page.parent.mkdir(parents=True)
    page.write_text("mine")
    with pytest.raises(ImprintError, match=r"isympy\.1"):
        place.judge()


def test_a_manual_page_that_the_owner_changed_stays(place: Place) -> None:
    page = with_a_page(place)
    place.carry_out(place.judge())
    page.write_text("mine")
    for path in place.staged.iterdir():
        shutil.rmtree(path)
    change = place.judge("onnxruntime")
    assert [row.path for row in change.skipped] == [PAGE]
    placing.take_out(change, change.going[0])
    assert page.read_text() == "mine"


@pytest.mark.parametrize("linked", ["share", "share/man", "share/man/man1"])
def test_a_manual_page_is_not_written_through_a_link(place: Place, linked: str) -> None:
    with_a_page(place)
    (place.prefix / linked).parent.mkdir(parents=True, exist_ok=True)
    (place.prefix / linked).symlink_to(place.outside)
    with pytest.raises(ImprintError, match="link"):
        place.judge()
