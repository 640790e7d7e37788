"""A bundle for a machine without network: collected from an index on this machine, and installed from with no other."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.shapes import SHAPES, problems
from imprint.context import Context
from imprint.errors import ImprintError, IntegrityError, NetworkError, UsageError
from imprint.operations.bundle import BundleOptions, bundle
from imprint.paths import Home
from imprint.planning.model import Libc, Platform
from imprint.results import Result
from imprint.runtime.installer.bundle import parse_files, spot_of
from imprint.runtime.installer.bundle_folder import parse_manifest
from support.hostile_index import Index, serving
from support.place import Place
from support.sandbox import sandboxed
from support.twins import Twins, lock, make_twins, wheel

ROOT = Path(__file__).parents[2]
LOCK = "left==1.0 \\\n    --hash=sha256:" + "a" * 64 + "\n"


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    made = make_twins(tmp_path_factory.mktemp("twins"))
    model = wheel(made.wheels, "tiny-model", "1.0", {"model/model.onnx": "m"})
    lock(made.lock_path("model-minilm.txt"), {"tiny-model==1.0": model})
    return made


def collect(tmp_path: Path, twins: Twins, url: str, target: str = "linux-x86_64", device: str = "cpu") -> Result[Any]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}
    context = Context(Home(tmp_path / "home"), environ, {"model.device": device})
    options = BundleOptions(target, tmp_path / "bundle", index_url=url, lock_path=twins.lock_path, tool_locks=())
    return bundle(context, options, lambda _: None)


def test_a_bundle_is_collected_checked_and_installed_from(tmp_path: Path, twins: Twins) -> None:
    with serving(Index(twins.wheels)) as index:
        result = collect(tmp_path, twins, index.url, device="gpu")
    folder = tmp_path / "bundle"
    assert problems(result.data, SHAPES["bundle"]) == []
    assert result.data["builds"] == ["cuda13", "cpu"]
    manifest = json.loads((folder / "manifest.json").read_bytes())
    wheels = {path.name for path in folder.glob("*.whl")}
    assert wheels == set(manifest["wheels"])
    assert {"onnxruntime", "onnxruntime_gpu", "nvidia_cublas", "nvidia_curand", "numpy", "tiny_model"} == {
        name.partition("-")[0] for name in wheels
    }
    for name, entry in manifest["wheels"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == entry["sha256"]
    for name, digest in manifest["locks"].items():
        assert hashlib.sha256((folder / "locks" / name).read_bytes()).hexdigest() == digest
    place = Place(tmp_path / "elsewhere", twins)
    assert place.setup("gpu", offline=True, find_links=folder).data["status"]["runs_on"] == "gpu"


def test_a_second_run_fetches_only_what_is_missing_or_damaged(tmp_path: Path, twins: Twins) -> None:
    with serving(Index(twins.wheels)) as index:
        collect(tmp_path, twins, index.url)
        next((tmp_path / "bundle").glob("numpy-*.whl")).write_bytes(b"half")
        index.asked.clear()
        collect(tmp_path, twins, index.url)
        assert [path for path in index.asked if path.startswith("/files/") and "onnxruntime" in path] == []
        assert any("numpy" in path for path in index.asked if path.startswith("/files/"))
    assert not list((tmp_path / "bundle").glob("*.part"))


@pytest.mark.parametrize(
    ("trick", "kind"), [("wrong-bytes", IntegrityError), ("truncated", ImprintError), ("missing-file", NetworkError)]
)
def test_bad_files_are_not_kept(tmp_path: Path, twins: Twins, trick: str, kind: type[ImprintError]) -> None:
    with serving(Index(twins.wheels, trick)) as index, pytest.raises(kind) as caught:
        collect(tmp_path, twins, index.url)
    assert "onnxruntime" in caught.value.message
    assert caught.value.code in {"integrity", "network"}
    assert not list((tmp_path / "bundle").glob("onnxruntime-*"))


def test_what_is_neither_a_file_nor_a_platform_is_refused(tmp_path: Path, twins: Twins) -> None:
    with pytest.raises(UsageError):
        collect(tmp_path, twins, "http://127.0.0.1:9/x", "amiga-m68k")


def test_a_file_that_no_lock_names_is_refused() -> None:
    text = 'lock-version = "1.0"\ncreated-by = "uv"\n[[packages]]\nname = "left"\nversion = "1.0"\n'
    text += 'wheels = [{url = "http://x/%s", hashes = {sha256 = "%s"}}]\n'
    (found,) = parse_files(text % ("left-1.0-py3-none-any.whl", "a" * 64), LOCK, "lock.txt")
    assert (found.name, found.size) == ("left-1.0-py3-none-any.whl", None)
    with pytest.raises(IntegrityError, match="left-1"):
        parse_files(text % ("left-1.0-py3-none-any.whl", "b" * 64), LOCK, "lock.txt")
    with pytest.raises(IntegrityError, match="cannot be read"):
        parse_files(text % ("..%2F..%2Fleft.whl", "a" * 64), LOCK, "lock.txt")


@pytest.mark.parametrize("answer", ["", "[", 'lock-version = "9.0"\ncreated-by = "uv"\npackages = []\n'])
def test_an_answer_that_is_no_pylock_document_is_refused(answer: str) -> None:
    with pytest.raises(IntegrityError, match="cannot be read"):
        parse_files(answer, LOCK, "lock.txt")


LINUX = Platform("linux", "x86_64", Libc("glibc", "2.36"))


@pytest.mark.parametrize(
    ("platform", "triple"),
    [
        (LINUX, "x86_64-manylinux_2_36"),
        (replace(LINUX, libc=Libc("glibc", "2.99")), "x86_64-manylinux_2_40"),
        (replace(LINUX, libc=Libc("glibc", "2.30")), "x86_64-manylinux_2_28"),
        (replace(LINUX, libc=None), "x86_64-manylinux_2_28"),
        (replace(LINUX, libc=None, arch="aarch64"), "aarch64-manylinux_2_34"),
        (Platform("windows", "x86_64"), "x86_64-pc-windows-msvc"),
        (Platform("macos", "aarch64", None, "15.1"), "aarch64-apple-darwin"),
    ],
)
def test_platforms_have_the_installer_s_names(platform: Platform, triple: str) -> None:
    assert spot_of(platform, "3.12").triple == triple


def test_a_platform_without_a_name_is_refused() -> None:
    with pytest.raises(ImprintError) as caught:
        spot_of(Platform("plan9", "mips"), "3.12")
    assert caught.value.specific_code == "platform-unknown"


def other(tmp_path: Path) -> dict[str, bytes | str]:
    """Return every file and link below the bundle's folder."""
    found = sorted((tmp_path / "bundle").rglob("*"))
    return {
        path.relative_to(tmp_path / "bundle").as_posix(): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        for path in found
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("there", ["notes.txt", "locks/cpu.txt", "manifest.json", "onnxruntime-1.31.1.whl"])
@sandboxed
def test_a_folder_with_files_of_its_own_is_refused_and_left_as_it_is(tmp_path: Path, twins: Twins, there: str) -> None:
    (tmp_path / "bundle" / there).parent.mkdir(parents=True)
    (tmp_path / "bundle" / there).write_bytes(b'{"schema": 1, "name": "my project"}')
    before = other(tmp_path)
    with pytest.raises(ImprintError) as caught:
        collect(tmp_path, twins, "http://127.0.0.1:9/x")
    assert caught.value.specific_code == "not-ours"
    assert other(tmp_path) == before


def test_the_checkout_itself_is_refused(tmp_path: Path, twins: Twins) -> None:
    """A copy of it, for the case that it is not."""
    shutil.copytree(ROOT / "locks", tmp_path / "bundle" / "locks")
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "bundle")
    before = other(tmp_path)
    with pytest.raises(ImprintError, match="is not one of Imprint"):
        collect(tmp_path, twins, "http://127.0.0.1:9/x")
    assert other(tmp_path) == before


def test_another_application_s_folder_is_not_used_as_a_home(tmp_path: Path, twins: Twins) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "other.db").touch()
    with pytest.raises(ImprintError) as caught:
        collect(tmp_path, twins, "http://127.0.0.1:9/x")
    assert caught.value.specific_code == "not-ours"
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["other.db"]
    assert not (tmp_path / "bundle").exists()


def test_a_bundle_for_another_machine_takes_the_place_of_the_first(tmp_path: Path, twins: Twins) -> None:
    """What only the first held goes; what its owner added stays."""
    with serving(Index(twins.wheels)) as index:
        collect(tmp_path, twins, index.url, device="gpu")
        for name in ("added-1.0-py3-none-any.whl", "README"):
            (tmp_path / "bundle" / name).write_bytes(b"mine")
        collect(tmp_path, twins, index.url)
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_bytes())
    wheels = {path.name for path in (tmp_path / "bundle").glob("*.whl")}
    assert wheels == {*manifest["wheels"], "added-1.0-py3-none-any.whl"}
    assert {path.name for path in (tmp_path / "bundle" / "locks").iterdir()} == set(manifest["locks"])
    assert (tmp_path / "bundle" / "README").read_bytes() == b"mine"
    assert manifest["complete"] is True


def test_what_an_interrupted_second_run_had_to_remove_goes_with_the_third(tmp_path: Path, twins: Twins) -> None:
    with serving(Index(twins.wheels)) as index:
        collect(tmp_path, twins, index.url, device="gpu")
        next((tmp_path / "bundle").glob("numpy-*.whl")).unlink()
    with serving(Index(twins.wheels, "missing-file", "numpy")) as index, pytest.raises(NetworkError):
        collect(tmp_path, twins, index.url)
    assert json.loads((tmp_path / "bundle" / "manifest.json").read_bytes())["complete"] is False
    assert list((tmp_path / "bundle").glob("nvidia_*.whl"))
    with serving(Index(twins.wheels)) as index:
        collect(tmp_path, twins, index.url)
    assert not list((tmp_path / "bundle").glob("nvidia_*.whl"))


def test_links_in_a_bundle_are_replaced_and_never_followed(tmp_path: Path, twins: Twins) -> None:
    precious = tmp_path / "precious"
    with serving(Index(twins.wheels)) as index:
        collect(tmp_path, twins, index.url)
        (wheel,) = (tmp_path / "bundle").glob("numpy-*.whl")
        lock = next((tmp_path / "bundle" / "locks").iterdir())
        precious.write_bytes(wheel.read_bytes())
        places = (wheel, wheel.with_name(f"{wheel.name}.part"), lock, tmp_path / "bundle" / "manifest.json")
        content = (tmp_path / "bundle" / "manifest.json").read_bytes()
        for place in places:
            place.unlink(missing_ok=True)
            place.symlink_to(precious)
        (tmp_path / "bundle" / "manifest.json").unlink()
        (tmp_path / "bundle" / "manifest.json").write_bytes(content)
        before = precious.read_bytes()
        collect(tmp_path, twins, index.url)
    assert precious.read_bytes() == before
    assert not [name for name, value in other(tmp_path).items() if isinstance(value, str)]
    assert not places[1].exists()


def test_a_folder_of_locks_that_leads_elsewhere_is_refused(tmp_path: Path, twins: Twins) -> None:
    (tmp_path / "elsewhere").mkdir()
    with serving(Index(twins.wheels)) as index:
        collect(tmp_path, twins, index.url)
        shutil.rmtree(tmp_path / "bundle" / "locks")
        (tmp_path / "bundle" / "locks").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ImprintError) as caught:
            collect(tmp_path, twins, index.url)
    assert caught.value.specific_code == "not-ours"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_manifest_names_nothing_outside_its_folder() -> None:
    wheels = dict.fromkeys(("a-1-py3-none-any.whl", "../b.whl", "/c.whl", "d.txt", "..whl/../e.whl"))
    named = parse_manifest(
        {"platform": "x", "wheels": wheels, "locks": {"a.txt": "", "../b.txt": ""}, "stale": [1, "x"]}
    )
    assert named == {"a-1-py3-none-any.whl", "locks/a.txt"}


@pytest.mark.parametrize(
    "document", [{}, {"schema": 1}, {"wheels": {}, "locks": {}}, {"wheels": [], "locks": {}, "platform": "x"}]
)
def test_another_programs_manifest_is_no_bundle(document: dict[str, object]) -> None:
    assert parse_manifest(document) is None


@pytest.mark.slow
@pytest.mark.parametrize("start", ["launcher", "library"])
def test_the_real_bundle_serves_a_machine_without_network(
    tmp_path_factory: pytest.TempPathFactory, real_bundle: Path, start: str, without_network: Callable[..., str]
) -> None:
    """An empty home, an empty cache, no network: the launcher's first start, the target, the model, and texts."""
    home = tmp_path_factory.mktemp(start) / "home"
    command = [str(ROOT / "cmd" / "imprint")]
    if start == "library":
        code = "import sys; sys.path[:0] = sys.argv.pop(1).split('|'); from imprint_cli.app import main; main()"
        command = [sys.executable, "-c", code, f"{ROOT}|{ROOT / 'cmd'}"]
    environ = {"IMPRINT_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(home.parent)}
    options = ["--yes", "--offline", "--find-links", str(real_bundle)]
    assert "embeddings run on the CPU" in without_network([*command, "setup", *options], environ)
    assert '"embedding"' in without_network([*command, "embed", "a text"], environ)


@pytest.fixture(scope="session")
def real_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("real bundle")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "IMPRINT_"))}
    context = Context(Home(root / "home"), environ, {})
    bundle(context, BundleOptions("linux-x86_64", root / "bundle"), lambda _: None)
    return root / "bundle"


@pytest.fixture
def without_network() -> Callable[..., str]:
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a network namespace needs to be allowed")

    def run(argv: list[str], environ: dict[str, str]) -> str:
        ended = subprocess.run(
            ["unshare", "-n", *argv], env=environ, capture_output=True, text=True, check=False, timeout=200
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run
