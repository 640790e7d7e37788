from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from imprint.errors import ImprintError, IntegrityError, NetworkError, NoSpaceError, NotOursError
from imprint.paths import Home
from imprint.runtime.installer.sources import Sources
from imprint.runtime.installer.uv import environment, find_uv, install_arguments
from imprint.runtime.installer.uv_failures import classify

HOME = Home(Path("/h o m e"))

# What uv 0.13.9 wrote, shortened.
MISMATCH = """Using Python 3.11.7 environment at: v2
Resolved 5 packages in 76ms
error: Failed to download `flatbuffers==25.12.19`
  cause: Hash mismatch for `flatbuffers==25.12.19`

         Expected:
           sha256:0034f50c427838bb021c2d66a3d1168e9d199b0607e6329399f04846d42e20b4

         Computed:
           sha256:7634f50c427838bb021c2d66a3d1168e9d199b0607e6329399f04846d42e20b4
"""
OFFLINE = """error: No solution found when resolving dependencies
  cause: Because flatbuffers was not found in the cache and you require flatbuffers==25.12.19, we can conclude that your requirements are unsatisfiable.

hint: Packages were unavailable because the network was disabled. When the network is disabled, registry packages may only be read from the cache.
"""  # noqa: E501 - as it was written
REFUSED = """error: Request failed after 3 retries in 6.0s
  cause: Failed to fetch: http://user:secret@127.0.0.1:9/simple/onnxruntime/
  cause: error sending request for url (http://user:secret@127.0.0.1:9/simple/onnxruntime/)
  cause: client error (Connect)
  cause: tcp connect error
  cause: Connection refused (os error 111)
"""
DNS = """error: Request failed after 3 retries in 6.9s
  cause: Failed to fetch: https://index.example/simple/packaging/
  cause: dns error
  cause: failed to lookup address information: Temporary failure in name resolution
"""
FULL = """Downloading numpy (16.1MiB)
error: Failed to download `numpy==2.4.6`
  cause: Failed to extract archive: numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl
  cause: I/O operation failed during extraction
  cause: failed to write to file `/tmp/numpy/_core/_multiarray_umath.so`: No space left on device (os error 28)
"""
NO_WHEEL = """error: No solution found when resolving dependencies
  cause: Because onnxruntime-gpu==1.31.1 has no wheels with a matching platform tag and you require it, we can conclude that your requirements are unsatisfiable.
"""  # noqa: E501 - as it was written
NO_HASH = "error: Hash-checking is required, but no trusted hash was provided for: `flatbuffers`\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (MISMATCH, IntegrityError),
        (NO_HASH, IntegrityError),
        (OFFLINE, NetworkError),
        (REFUSED, NetworkError),
        (DNS, NetworkError),
        (FULL, NoSpaceError),
        (NO_WHEEL, ImprintError),
        ("", ImprintError),
    ],
)
def test_a_failure_of_uv_has_its_class(text: str, error: type[ImprintError]) -> None:
    found = classify(1, text, where=Path("/tmp"), needed=133_000_000)  # noqa: S108 - some folder that exists
    assert type(found) is error
    assert found.message


@pytest.mark.parametrize(
    ("sources", "text", "hint"),
    [
        (Sources(), DNS, "--index-url"),
        (Sources(offline=True), OFFLINE, "leave out `--offline`"),
        (Sources(offline=True, find_links=Path("/wheels")), OFFLINE, "imprint bundle"),
        (Sources(offline=True, find_links=Path("/wheels")), NO_WHEEL, "imprint bundle"),
    ],
)
def test_what_is_not_found_is_to_be_looked_for_where_it_can_be(sources: Sources, text: str, hint: str) -> None:
    found = classify(1, text, where=Path("/"), sources=sources)
    assert type(found) is NetworkError
    assert found.hint is not None
    assert hint in found.hint


UNTRUSTED = """error: Failed to fetch: `https://index.example/simple/packaging/`
  cause: error sending request for url (https://index.example/simple/packaging/)
  cause: client error (Connect)
  cause: invalid peer certificate: UnknownIssuer
"""


def test_an_untrusted_certificate_is_told_the_variable_that_counts() -> None:
    found = classify(2, UNTRUSTED, where=Path("/"))
    assert type(found) is NetworkError
    assert "SSL_CERT_FILE" in (found.hint or "")


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"])
def test_certificates_that_other_programs_trust_are_passed_on_under_the_name_that_counts(
    tmp_path: Path, name: str
) -> None:
    """Unless the user chose for us already, or the file is not there."""
    file = tmp_path / "ca.pem"
    file.touch()
    assert environment(HOME, {name: str(file)}, Sources())["SSL_CERT_FILE"] == str(file)
    assert "SSL_CERT_FILE" not in environment(HOME, {name: str(tmp_path / "gone")}, Sources())
    assert "SSL_CERT_FILE" not in environment(HOME, {name: str(file), "SSL_CERT_DIR": "/certs"}, Sources())
    assert environment(HOME, {name: str(file), "SSL_CERT_FILE": "/own"}, Sources())["SSL_CERT_FILE"] == "/own"


def test_a_mismatch_names_the_file_what_was_expected_and_what_came() -> None:
    message = classify(1, MISMATCH, where=Path("/")).message
    assert "flatbuffers==25.12.19" in message
    assert "expected sha256:0034f50c" in message
    assert "got sha256:7634f50c" in message


def test_a_full_disk_says_needed_free_and_where(tmp_path: Path) -> None:
    message = classify(1, FULL, where=tmp_path, needed=133_000_000).message
    assert "133 MB needed" in message
    assert "free, at" in message
    assert str(tmp_path) in message


def test_no_password_of_an_index_is_shown() -> None:
    found = classify(2, REFUSED, where=Path("/"))
    assert "secret" not in found.message


def test_a_killed_uv_is_said_to_be_killed() -> None:
    assert "signal 9" in classify(-9, "", where=Path("/")).message


def test_only_the_allowed_part_of_the_surroundings_reaches_uv() -> None:
    environ = {
        "https_proxy": "http://proxy:3128",
        "SSL_CERT_FILE": "/certs.pem",
        "UV_INDEX_URL": "http://evil",
        "UV_NO_VERIFY_HASHES": "1",
        "PIP_INDEX_URL": "http://evil",
        "PYTHONPATH": "/evil",
        "VIRTUAL_ENV": "/evil",
        "LD_PRELOAD": "/evil.so",
        "PATH": "/evil",
    }
    passed = environment(HOME, environ, Sources(index_url="https://user:secret@mirror/simple"))
    assert passed == {
        "https_proxy": "http://proxy:3128",
        "SSL_CERT_FILE": "/certs.pem",
        "UV_CACHE_DIR": "/h o m e/.uv-cache",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LOCK_TIMEOUT": "60",
        "UV_DEFAULT_INDEX": "https://user:secret@mirror/simple",
    }


def test_hashes_and_wheels_are_always_required_and_no_url_is_an_argument() -> None:
    arguments = install_arguments([Path("/a.txt")], Path("/p"), Sources(index_url="https://x/simple"))
    assert "--require-hashes" in arguments
    assert arguments[arguments.index("--only-binary") + 1] == ":all:"
    assert "--no-deps" in arguments
    assert not [argument for argument in arguments if "://" in argument]


def test_a_uv_beside_the_interpreter_comes_before_the_launchers_and_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def executable(folder: Path, version: str) -> Path:
        folder.mkdir(parents=True)
        (folder / "uv").write_text(f"#!/bin/sh\necho 'uv {version} (abc)'\n")
        (folder / "uv").chmod(0o755)
        return folder / "uv"

    home = Home(tmp_path / "home")
    path = {"PATH": str(tmp_path / "path")}
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "scripts" / "bin"))
    with pytest.raises(ImprintError) as caught:
        find_uv(home, path)
    assert caught.value.specific_code == "uv-missing"
    assert caught.value.hint
    on_path = executable(tmp_path / "path", "0.13.9")
    assert find_uv(home, path).executable == on_path
    assert find_uv(home, path).version() == "0.13.9"
    launchers = executable(home.tool / "env-1" / "bin", "0.13.9")
    assert find_uv(home, path).executable == launchers
    launchers.parent.chmod(0o777)
    with pytest.raises(ImprintError, match="every user can write"):
        find_uv(home, path)
    launchers.parent.chmod(0o755)
    beside = executable(tmp_path / "scripts" / "bin", "0.13.9")
    assert find_uv(home, path).executable == beside


def test_an_old_uv_on_path_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uv").write_text("#!/bin/sh\necho uv 0.4.1\n")
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "none"))
    with pytest.raises(ImprintError):
        find_uv(Home(tmp_path / "home"), {"PATH": str(tmp_path)})


def polluted(python: str) -> str:
    """Return what uv 0.13.9 says of an interpreter that prints before it answers (read 2026-12-01)."""
    return (
        f"error: Failed to inspect Python interpreter from provided path at `{python}`\n"
        f"  Caused by: Querying Python at `{python}` returned an invalid response: expected value at line 1\n\n"
        "[stdout]\nhello from sitecustomize\n" + '{"result": "success", "markers": {' + "x" * 2900 + "}}\n"
    )


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("sitecustomize.py", "print('hello from sitecustomize')\n", True),
        ("usercustomize.py", "print('hello from sitecustomize')\n", True),
        ("hello.pth", "import sys; sys.stdout.write('hello from sitecustomize')\n", True),
        ("module.pth", "import noisy\n", True),
        ("harmless.pth", "import sys\n", False),
    ],
)
def test_an_interpreter_that_prints_first_is_told_with_the_file_that_makes_it(
    tmp_path: Path, name: str, content: str, *, named: bool
) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (packages / name).write_text(content)
    (packages / "noisy.py").write_text("print('hello from sitecustomize')\n")
    found = classify(2, polluted(str(tmp_path / "bin" / "python")), where=Path("/"))
    assert found.specific_code == "python-path-interferes"
    assert "`hello from sitecustomize`" in found.message
    assert (f"`{packages / name}`" in found.message) is named
    assert "markers" not in found.message
    assert ("the named file" in str(found.hint)) is named


@pytest.mark.parametrize("linked", [True, False])
def test_a_folder_that_is_no_cache_is_never_given_to_the_installer(tmp_path: Path, linked: bool) -> None:
    home, theirs = Home(tmp_path / "home"), tmp_path / "theirs"
    place = theirs if linked else home.cache
    (place / "photos").mkdir(parents=True)
    (place / "photos" / "one.jpg").write_text("theirs")
    home.root.mkdir(exist_ok=True)
    if linked:
        home.cache.symlink_to(theirs)
    uv = find_uv(home, dict(os.environ), Sources(offline=True))
    for act in (uv.prune, lambda: uv.clean(["numpy"]), lambda: uv.create(tmp_path / "env", Path(sys.executable))):
        with pytest.raises(NotOursError, match="photos"):
            act()
    assert [path.name for path in sorted(place.rglob("*"))] == ["photos", "one.jpg"]
