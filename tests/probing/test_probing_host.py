"""The same contract for the real machine and the played one, and what only a real child can show."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from imprint.probing.host import ChildResult, Host
from imprint.probing.this_machine import RealHost
from support.fake_host import FakeHost

ECHO = "import sys; sys.stdout.write(sys.argv[1]); sys.stderr.write('talk'); sys.exit(3)"


class Build(Protocol):
    """Makes a host that has these files and links below a folder, and says which folder."""

    def __call__(self, files: Mapping[str, str], links: Mapping[str, str]) -> tuple[Host, str]:
        """Build it."""


def build_fake(files: Mapping[str, str], links: Mapping[str, str]) -> tuple[Host, str]:
    def interpreter(argv: object, environ: Mapping[str, str]) -> ChildResult:
        del environ
        assert isinstance(argv, list)
        return ChildResult(3, stdout=argv[-1], stderr="talk")

    return (
        FakeHost(
            files={f"/root/{name}": text for name, text in files.items()},
            links={f"/root/{name}": f"/root/{target}" for name, target in links.items()},
            programs={sys.executable: interpreter},
        ),
        "/root",
    )


@pytest.fixture(params=["real", "fake"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Build:
    if request.param == "fake":
        return build_fake

    def build_real(files: Mapping[str, str], links: Mapping[str, str]) -> tuple[Host, str]:
        root = tmp_path.resolve() / "root"
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        for name, target in links.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(root / target)
        return RealHost(), str(root)

    return build_real


def test_reading(build: Build) -> None:
    """A file gives its text up to the limit; what is absent or a folder gives None and never an error."""
    host, root = build({"a/one": "first line\n", "a/two": "", "b": "x"}, {})
    assert host.read_text(f"{root}/a/one") == "first line\n"
    assert host.read_text(f"{root}/a/one", 5) == "first"
    assert host.read_text(f"{root}/a/two") == ""
    assert host.read_text(f"{root}/a") is None
    assert host.read_text(f"{root}/none") is None
    assert host.list_dir(f"{root}/a") == ("one", "two")
    assert host.list_dir(f"{root}/b") is None
    assert host.list_dir(f"{root}/none") is None


def test_links(build: Build) -> None:
    """Links are followed, folders' links too; a dangling one does not exist but is still a link."""
    host, root = build({"real/file": "text"}, {"short": "real", "gone": "nowhere"})
    assert host.read_text(f"{root}/short/file") == "text"
    assert host.resolve(f"{root}/short/file") == f"{root}/real/file"
    assert host.exists(f"{root}/short")
    assert host.is_link(f"{root}/short")
    assert not host.is_link(f"{root}/real")
    assert not host.exists(f"{root}/gone")
    assert host.is_link(f"{root}/gone")
    assert host.resolve(f"{root}/gone") is None


def test_children(build: Build) -> None:
    """A child's streams and exit code come back; one that cannot start says why; output is cut at the limit."""
    host, root = build({}, {})
    result = host.run([sys.executable, "-I", "-c", ECHO, "hello"], deadline=30)
    assert result == ChildResult(3, stdout="hello", stderr="talk")
    missing = host.run([f"{root}/none"], deadline=30)
    assert missing.returncode is None
    assert missing.not_started
    cut = host.run([sys.executable, "-I", "-c", ECHO, "x" * 5000], deadline=30, limit=100)
    assert (cut.stdout, cut.truncated) == ("x" * 100, True)


def test_interpreter_facts(build: Build) -> None:
    """Every host describes its interpreter with the same keys."""
    host, _ = build({}, {})
    assert set(host.interpreter()) == set(FakeHost().interpreter())


def test_deadline_ends_the_whole_group() -> None:
    """A child that hangs with a grandchild holding its pipes is ended in time, both of them."""
    code = "import subprocess,sys,time; p=subprocess.Popen(['sleep','60']); print(p.pid,flush=True); time.sleep(60)"
    began = time.monotonic()
    result = RealHost().run([sys.executable, "-I", "-c", code], deadline=1.0)
    assert time.monotonic() - began < 5
    assert result.timed_out
    grandchild = int(result.stdout)
    for _ in range(100):
        state = RealHost().read_text(f"/proc/{grandchild}/stat") if sys.platform == "linux" else None
        if state is None or ") Z " in state:
            break
        time.sleep(0.02)
    else:
        pytest.fail("the grandchild is still running")


def test_grandchild_does_not_hold_up_a_finished_child() -> None:
    """A child that ends at once is answered at once, even if it left somebody holding its pipes."""
    code = "import subprocess; subprocess.Popen(['sleep','60']); print('done',flush=True)"
    began = time.monotonic()
    result = RealHost().run([sys.executable, "-I", "-c", code], deadline=30)
    assert (result.returncode, result.stdout) == (0, "done\n")
    assert time.monotonic() - began < 10


def test_endless_output_is_bounded() -> None:
    """A child that writes without end costs no memory and is ended by the deadline."""
    code = "import os\nwhile True: os.write(1, b'x' * 65536)"
    result = RealHost().run([sys.executable, "-I", "-c", code], deadline=0.7, limit=1000)
    assert result.timed_out
    assert result.truncated
    assert len(result.stdout) == 1000


def test_environment_is_the_hosts_own(tmp_path: Path) -> None:
    """A host made for another environment gives it to its children."""
    host = RealHost({"PATH": os.environ["PATH"], "ONLY_HERE": str(tmp_path)})
    code = "import os; print(sorted(n for n in os.environ if n != 'LC_CTYPE'))"
    assert host.run([sys.executable, "-I", "-c", code], deadline=30).stdout.strip() == "['ONLY_HERE', 'PATH']"
